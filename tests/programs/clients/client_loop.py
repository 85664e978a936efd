# SPDX-License-Identifier: MIT
"""An asyncio loop with other things to do: client_loop.py OTHER. A line `PORT COUNT busy|quiet` makes COUNT
connections to PORT side by side, with two calls on each; meanwhile, if busy, a timer ticks every 10 ms and
calls go on on a connection to OTHER. What took how long (ms) is told as one line of JSON."""
import asyncio
import json
import sys
import time


def now():
	return time.monotonic() * 1000


async def exchange(reader, writer):
	began = now()
	writer.write(b'hello\n')
	line = await reader.readline()
	if line != b'hello\n':
		raise ConnectionError(f'got {line}')
	return now() - began


async def late(port, took):
	began = now()
	reader, writer = await asyncio.open_connection('127.0.0.1', port)
	took['connect'].append(now() - began)
	took['connected'] = now()
	took['first'].append(await exchange(reader, writer))
	took['second'].append(await exchange(reader, writer))
	writer.close()


async def tick(took):
	while True:
		began = now()
		await asyncio.sleep(0.01)
		took['gaps'].append(now() - began - 10)


async def talk(other, took):
	while True:
		took['trips'].append(await exchange(*other))
		await asyncio.sleep(0.01)


async def turn(port, count, busy, other):
	took = {'connect': [], 'first': [], 'second': [], 'gaps': [], 'trips': []}
	cpu, began = time.process_time(), now()
	beside = [asyncio.ensure_future(job) for job in (tick(took), talk(other, took))] if busy else []
	try:
		await asyncio.gather(*(late(port, took) for _ in range(count)))
		took['connected'] -= began
		took['ended'] = now() - began
	except OSError as error:
		took['error'] = str(error)
	for job in beside:
		job.cancel()
	took['cpu'] = (time.process_time() - cpu) * 1000
	print(json.dumps(took), flush=True)
	if beside:
		await asyncio.wait(beside)


async def main():
	lines = asyncio.StreamReader()
	await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
	print('ready', flush=True)
	while line := (await lines.readline()).decode().split():
		other = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
		await turn(int(line[0]), int(line[1]), line[2] == 'busy', other)
		other[1].close()


asyncio.run(main())
