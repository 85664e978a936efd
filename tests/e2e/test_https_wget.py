# SPDX-License-Identifier: MIT
import harness
from https import Https


class Wget(Https):
	def calls(self, count, patience):
		return self.run_many([['wget', '-qO-', '-t', '1', '-T', str(patience), '--no-check-certificate', self.url]] * count)


if __name__ == '__main__':
	harness.main()
