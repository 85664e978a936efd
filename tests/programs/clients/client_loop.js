// SPDX-License-Identifier: MIT
// As client_loop.py, on node's sockets.
'use strict';
const net = require('net');
const readline = require('readline');

const now = () => Number(process.hrtime.bigint()) / 1e6;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function connect(port) {
	return new Promise((done, fail) => {
		const socket = net.connect(port, '127.0.0.1', () => done(socket));
		socket.setEncoding('latin1');
		socket.on('error', fail);
	});
}

async function exchange(socket) {
	const began = now();
	const answer = new Promise((done, fail) => {
		socket.once('data', done);
		socket.once('error', fail);
	});
	socket.write('hello\n');
	const data = await answer;
	if (data !== 'hello\n')
		throw new Error(`got ${data}`);
	return now() - began;
}

async function late(port, took) {
	const began = now();
	const socket = await connect(port);
	took.connect.push(now() - began);
	took.connected = now();
	took.first.push(await exchange(socket));
	took.second.push(await exchange(socket));
	socket.destroy();
}

async function turn(port, count, busy) {
	const took = { connect: [], first: [], second: [], gaps: [], trips: [] };
	const other = await connect(Number(process.argv[2]));
	const cpu = process.cpuUsage();
	const began = now();
	let ended = !busy;
	const tick = async () => {
		while (!ended) {
			const before = now();
			await sleep(10);
			took.gaps.push(now() - before - 10);
		}
	};
	const talk = async () => {
		while (!ended) {
			took.trips.push(await exchange(other));
			await sleep(10);
		}
	};
	const beside = [tick(), talk()];
	try {
		await Promise.all(Array.from({ length: count }, () => late(port, took)));
		took.connected -= began;
		took.ended = now() - began;
	} catch (error) {
		took.error = error.message;
	}
	ended = true;
	const used = process.cpuUsage(cpu);
	took.cpu = (used.user + used.system) / 1000;
	await Promise.all(beside);
	other.destroy();
	console.log(JSON.stringify(took));
}

let last = Promise.resolve();
readline.createInterface({ input: process.stdin }).on('line', (line) => {
	const [port, count, how] = line.split(' ');
	last = last.then(() => turn(Number(port), Number(count), how === 'busy'));
});
console.log('ready');
