# SPDX-License-Identifier: MIT
"""Python's two well-known HTTP libraries."""
import asyncio
import sys

import aiohttp
import requests

BASE = sys.argv[1]

with requests.Session() as session:
	print([len(session.get(BASE + path).content) for path in ('/', '/big.txt', '/hello.txt')])


async def fetch(client, i):
	async with client.get(f'{BASE}/files/{i % 8}.txt') as answer:
		return len(await answer.read())


async def main():
	async with aiohttp.ClientSession() as client:
		print(await asyncio.gather(*(fetch(client, i) for i in range(40))))

asyncio.run(main())
