#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# perl: sockets through its own buffers, HTTP::Tiny with keep-alive, and a child each.
use strict;
use warnings;
use IO::Socket::INET;
use HTTP::Tiny;
use Digest::SHA qw(sha1_hex);

my ($base) = @ARGV;
my ($host, $port) = $base =~ m{//([^:]+):(\d+)};
my $socket = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port) or die "connect: $@";
print $socket "GET /hello.txt HTTP/1.0\r\n\r\n";
my @lines = <$socket>;
print $lines[-1];
my $http = HTTP::Tiny->new(keep_alive => 1);
for my $path (qw(/ /big.txt /missing /hello.txt)) {
	my $answer = $http->get($base . $path);
	print "$path $answer->{status} ", sha1_hex($answer->{content}), "\n";
}
for my $i (0 .. 3) {
	my $pid = fork // die;
	if (!$pid) {
		exit(length(HTTP::Tiny->new->get("$base/files/$i.txt")->{content}) / 100);
	}
	waitpid $pid, 0;
	print $? >> 8, "\n";
}
