// SPDX-License-Identifier: MIT
// A kept-alive agent, fetch(), bare sockets, and a burst of connections, of node.
const http = require('http');
const net = require('net');
const crypto = require('crypto');

const base = new URL(process.argv[2]);
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const digest = (data) => crypto.createHash('sha1').update(data).digest('hex');

function get(path, options = {}) {
	return new Promise((resolve, reject) => {
		http.get({ host: base.hostname, port: base.port, path, ...options }, (answer) => {
			const parts = [];
			answer.on('data', (part) => parts.push(part));
			answer.on('end', () => resolve(`${path} ${answer.statusCode} ${digest(Buffer.concat(parts))}`));
		}).on('error', reject);
	});
}

function raw() {
	return new Promise((resolve, reject) => {
		const socket = net.connect(base.port, base.hostname, () => socket.write('GET / HTTP/1.0\r\n\r\n'));
		let length = 0;
		socket.on('data', (data) => { length += data.length; });
		socket.on('end', () => resolve(length > 100));
		socket.on('error', reject);
	});
}

(async () => {
	for (const path of ['/', '/big.txt', '/missing', '/hello.txt'])
		console.log(await get(path, { agent }));
	agent.destroy();
	console.log(await (await fetch(base.href + 'hello.txt')).text());
	const files = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => get(`/files/${i}.txt`, { agent: false }));
	console.log((await Promise.all(files)).join('\n'));
	console.log(await raw());
	process.exit(0);
})();
