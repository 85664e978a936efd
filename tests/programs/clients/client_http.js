// SPDX-License-Identifier: MIT
// node's http, one request each; `N` on stdin makes N side by side. With `keep`, on an agent that keeps
// its connections alive.
'use strict';
const http = require('http');
const readline = require('readline');

const limitMs = Number(process.argv[4] || 2000);
const agent = process.argv[3] === 'keep' ? new http.Agent({ keepAlive: true }) : new http.Agent();

function call() {
	const began = process.hrtime.bigint();
	let done = false;
	const say = (text) => {
		if (done)
			return;
		done = true;
		const ms = Number(process.hrtime.bigint() - began) / 1e6;
		console.log(`${ms.toFixed(1)} ${text}`);
	};
	const request = http.get({ host: '127.0.0.1', port: Number(process.argv[2]), agent }, (response) => {
		let body = '';
		response.on('data', (chunk) => { body += chunk; });
		response.on('end', () => say(`ok ${body.trim()}`));
		response.on('error', (error) => say(`${error.code} ${error.message}`));
	});
	const limit = setTimeout(() => {
		say('timed out');
		request.destroy();
	}, limitMs);
	request.on('error', (error) => say(`${error.code} ${error.message}`));
	request.on('close', () => clearTimeout(limit));
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
	for (let i = 0; i < Number(line); i++)
		call();
});
console.log('ready');
