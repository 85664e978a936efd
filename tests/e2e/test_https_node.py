# SPDX-License-Identifier: MIT
import harness
from https import Https

SCRIPT = '''
const request = require('https').get(process.argv[1], { rejectUnauthorized: false, agent: false }, (response) => {
	response.pipe(process.stdout);
	response.on('end', () => clearTimeout(limit));
});
const limit = setTimeout(() => request.destroy(new Error('timed out')), process.argv[2] * 1000);
request.on('error', (error) => { clearTimeout(limit); console.error(error.message); process.exitCode = 1; });
'''


class Node(Https):
	def calls(self, count, patience):
		return self.run_many([['node', '-e', SCRIPT, self.url, str(patience)]] * count)


if __name__ == '__main__':
	harness.main()
