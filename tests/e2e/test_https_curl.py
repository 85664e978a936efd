# SPDX-License-Identifier: MIT
import harness
from https import Https


class Curl(Https):
	def calls(self, count, patience):
		return self.run_many([['curl', '-sSk', '-m', str(patience), self.url]] * count)


if __name__ == '__main__':
	harness.main()
