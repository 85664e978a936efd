// SPDX-License-Identifier: MIT
// As client_transfer.py, on node's sockets: client_transfer.js PORT get|put SIZE.
'use strict';
const net = require('net');
const readline = require('readline');

const [port, method, size] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];
const body = Buffer.alloc(size);
for (let i = 0; i < size; i++)
	body[i] = i % 251;
const content = method === 'get' ? body : Buffer.from(`received ${size}\n`);

function transfer() {
	const began = process.hrtime.bigint();
	const parts = [];
	let failure = null;
	const socket = net.connect(port, '127.0.0.1', () => {
		if (method === 'get') {
			socket.write(`GET /${size} HTTP/1.1\r\nConnection: close\r\n\r\n`);
		} else {
			socket.write(`PUT / HTTP/1.1\r\nConnection: close\r\nContent-Length: ${size}\r\n\r\n`);
			socket.write(body);
		}
	});
	socket.on('data', (part) => parts.push(part));
	socket.on('error', (error) => { failure = error; });
	socket.on('end', () => socket.end());
	socket.on('close', () => {
		const ms = Number(process.hrtime.bigint() - began) / 1e6;
		const had = Buffer.concat(parts);
		const answer = Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${content.length}\r\n\r\n`),
			content]);
		let differing = 0;
		for (let i = 0; i < Math.min(had.length, answer.length); i++)
			differing += had[i] !== answer[i];
		const result = had.equals(answer) ? 'ok' : 'bad';
		console.log(`${ms.toFixed(1)} ${result} bytes=${had.length} differing=${differing} `
			+ (failure ? failure.message : 'none'));
	});
}

readline.createInterface({ input: process.stdin }).on('line', transfer);
console.log('ready');
