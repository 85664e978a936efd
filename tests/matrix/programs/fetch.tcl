# SPDX-License-Identifier: MIT
# tcl: its http package, one after the other and by events, and a socket of its own.
package require http
lassign $argv base
foreach path {/ /big.txt /missing /hello.txt} {
	set token [http::geturl $base$path]
	puts "$path [http::ncode $token] [string length [http::data $token]]"
	http::cleanup $token
}
set left 8
array set sizes {}
proc arrived {i token} {
	global left sizes
	set sizes($i) [string length [http::data $token]]
	incr left -1
}
for {set i 0} {$i < 8} {incr i} {
	http::geturl $base/files/$i.txt -command [list arrived $i]
}
while {$left > 0} {
	vwait left
}
parray sizes
regexp {//([^:]+):(\d+)} $base all host port
set channel [socket -async $host $port]
fconfigure $channel -translation binary
puts -nonewline $channel "GET /hello.txt HTTP/1.0\r\n\r\n"
flush $channel
puts [lindex [split [string trim [read $channel]] "\n"] end]
close $channel
