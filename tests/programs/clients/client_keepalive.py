# SPDX-License-Identifier: MIT
"""http.client on connections that are kept alive: call number i of a batch has connection number i,
which is opened again where it was lost."""
import http.client
import sys
import threading
import time

connections = {}
output = threading.Lock()


def call(index):
	began = time.monotonic()
	connection = connections.setdefault(index, http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=2))
	try:
		connection.request('GET', '/')
		text = 'ok ' + connection.getresponse().read().decode().strip()
	except (OSError, http.client.HTTPException) as error:
		connection.close()
		text = f'{type(error).__name__} {error}'
	with output:
		print(f'{(time.monotonic() - began) * 1000:.1f} {text}', flush=True)


print('ready', flush=True)
for line in sys.stdin:
	for number in range(int(line)):
		threading.Thread(target=call, args=(number,)).start()
