// SPDX-License-Identifier: MIT
// A reverse proxy in node, with kept connections to the server behind it.
const http = require('http');

const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
http.createServer((question, answer) => {
	const { url: path, method, headers } = question;
	question.pipe(http.request({ host: '127.0.0.1', port: process.env.PORT, path, method, headers, agent }, (from) => {
		answer.writeHead(from.statusCode, from.headers);
		from.pipe(answer);
	}));
}).listen(process.env.FRONT, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
