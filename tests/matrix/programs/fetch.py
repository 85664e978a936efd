# SPDX-License-Identifier: MIT
"""Python's ways to a server: one kept connection, a new one each, threads, children, and 200 at once."""
import asyncio
import hashlib
import http.client
import multiprocessing
import subprocess
import sys
import threading
import urllib.parse
import urllib.request

BASE = sys.argv[1]
HOST, PORT = urllib.parse.urlsplit(BASE).hostname, urllib.parse.urlsplit(BASE).port


def get(path):
	with urllib.request.urlopen(BASE + path) as answer:
		return hashlib.sha1(answer.read()).hexdigest()


def kept():
	connection = http.client.HTTPConnection(HOST, PORT)
	for path in ('/', '/big.txt', '/missing', '/hello.txt'):
		connection.request('GET', path)
		answer = connection.getresponse()
		print(path, answer.status, hashlib.sha1(answer.read()).hexdigest())
	connection.close()


def in_threads():
	found = {}
	threads = [threading.Thread(target=lambda i=i: found.update({i: get(f'/files/{i}.txt')})) for i in range(8)]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	print(sorted(found.items()))


def in_children():
	with multiprocessing.get_context('fork').Pool(4) as pool:
		print(pool.map(get, [f'/files/{i}.txt' for i in range(8)]))
	print(subprocess.run([sys.executable, '-c', f'import urllib.request as u; print(u.urlopen("{BASE}/hello.txt").read())'],
		check=True, capture_output=True).stdout)


async def one():
	reader, writer = await asyncio.open_connection(HOST, PORT)
	writer.write(b'GET /hello.txt HTTP/1.0\r\n\r\n')
	text = await reader.read()
	writer.close()
	await writer.wait_closed()
	return text.endswith(b'hello from the server\n')


async def at_once():
	print(sum(await asyncio.gather(*(one() for _ in range(200)))))


if __name__ == '__main__':
	kept()
	print([get(path) for path in ('/', '/hello.txt')])
	in_threads()
	in_children()
	asyncio.run(at_once())
