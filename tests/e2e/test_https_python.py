# SPDX-License-Identifier: MIT
import harness
from https import Https

SCRIPT = '''
import ssl, sys, urllib.request
context = ssl._create_unverified_context()
print(urllib.request.urlopen(sys.argv[1], timeout=float(sys.argv[2]), context=context).read().decode())
'''


class Python(Https):
	def calls(self, count, patience):
		return self.run_many([[harness.PYTHON, '-c', SCRIPT, self.url, str(patience)]] * count)


if __name__ == '__main__':
	harness.main()
