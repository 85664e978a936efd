# SPDX-License-Identifier: MIT
# gawk's two-way sockets.
BEGIN {
	for (i = 0; i < 4; i++) {
		service = "/inet/tcp/0/127.0.0.1/" PORT
		print "GET /files/" i ".txt HTTP/1.0\r\n\r" |& service
		lines = 0
		while ((service |& getline line) > 0)
			lines++
		close(service)
		print (lines > 100), line
	}
}
