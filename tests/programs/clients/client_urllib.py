# SPDX-License-Identifier: MIT
"""One request each with urllib; `N` on stdin makes N of them side by side."""
import sys
import threading
import time
import urllib.request

URL = f'http://127.0.0.1:{sys.argv[1]}/'
LIMIT = sys.argv[2] if len(sys.argv) > 2 else '2'
LIMIT = None if LIMIT == 'none' else float(LIMIT)
output = threading.Lock()


def call():
	began = time.monotonic()
	try:
		with urllib.request.urlopen(URL, timeout=LIMIT) as answer:
			text = 'ok ' + answer.read().decode().strip()
	except OSError as error:
		text = f'{type(error).__name__} {error}'
	with output:
		print(f'{(time.monotonic() - began) * 1000:.1f} {text}', flush=True)


print('ready', flush=True)
for line in sys.stdin:
	for _ in range(int(line)):
		threading.Thread(target=call).start()
