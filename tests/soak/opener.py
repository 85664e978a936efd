# SPDX-License-Identifier: MIT
"""opener.py PORT SECONDS: opens a connection, asks, closes, over and over; says how often."""
import socket
import sys
import time

port, ends = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
count = 0
while time.monotonic() < ends:
	with socket.create_connection(('127.0.0.1', port)) as connection:
		connection.sendall(b'GET /hello.txt HTTP/1.0\r\n\r\n')
		while connection.recv(4096):
			pass
	count += 1
print(count, 'requests')
