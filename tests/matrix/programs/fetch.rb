# SPDX-License-Identifier: MIT
# One persistent connection, then threads with one each.
require 'net/http'
require 'digest'

base = URI(ARGV[0])
Net::HTTP.start(base.host, base.port) do |http|
	%w[/ /big.txt /missing /hello.txt].each do |path|
		answer = http.get(path)
		puts "#{path} #{answer.code} #{answer.body.size} #{Digest::SHA1.hexdigest(answer.body)}"
	end
end
puts((0..7).map { |i| Thread.new { Net::HTTP.get(base.host, "/files/#{i}.txt", base.port) } }.map { |t| t.value.size }.sum)
