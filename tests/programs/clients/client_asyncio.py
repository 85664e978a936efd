# SPDX-License-Identifier: MIT
"""One request each on asyncio streams; `N` on stdin makes N of them side by side."""
import asyncio
import sys
import time

LIMIT = float(sys.argv[2]) if len(sys.argv) > 2 else 2


async def request():
	reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
	try:
		writer.write(b'GET / HTTP/1.0\r\n\r\n')
		answer = await reader.read(4096)
		if not answer:
			raise ConnectionError('the server said nothing')
		return answer.decode().split('\r\n\r\n', 1)[1].strip()
	finally:
		writer.close()


async def call():
	began = time.monotonic()
	try:
		text = 'ok ' + await asyncio.wait_for(request(), LIMIT)
	except (OSError, asyncio.TimeoutError) as error:
		text = f'{type(error).__name__} {error}'
	print(f'{(time.monotonic() - began) * 1000:.1f} {text}', flush=True)


async def main():
	lines = asyncio.StreamReader()
	await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
	print('ready', flush=True)
	while line := await lines.readline():
		await asyncio.gather(*(call() for _ in range(int(line))))


asyncio.run(main())
