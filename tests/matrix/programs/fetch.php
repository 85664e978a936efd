<?php
// SPDX-License-Identifier: MIT
// php: its stream wrapper, several streams at once, and a socket of its own.
$base = $argv[1] ?? $_GET['base'];
$host = parse_url($base, PHP_URL_HOST);
$port = parse_url($base, PHP_URL_PORT);
foreach (['/', '/big.txt', '/hello.txt'] as $path)
	echo $path, ' ', sha1(file_get_contents($base . $path)), "\n";
$streams = $answers = [];
for ($i = 0; $i < 8; $i++) {
	$stream = stream_socket_client("tcp://$host:$port", $code, $text, 5,
		STREAM_CLIENT_CONNECT | STREAM_CLIENT_ASYNC_CONNECT);
	stream_set_blocking($stream, false);
	$streams[$i] = $stream;
	$answers[$i] = '';
}
$asked = [];
while ($streams) {
	$read = $streams;
	$write = array_diff_key($streams, $asked);
	$except = null;
	stream_select($read, $write, $except, 10);
	foreach ($write as $i => $stream) {
		fwrite($stream, "GET /files/$i.txt HTTP/1.0\r\n\r\n");
		$asked[$i] = true;
	}
	foreach ($read as $i => $stream) {
		$answers[$i] .= fread($stream, 65536);
		if (feof($stream)) {
			fclose($stream);
			unset($streams[$i]);
		}
	}
}
foreach ($answers as $answer)
	echo sha1(substr($answer, strpos($answer, "\r\n\r\n"))), "\n";
