-- SPDX-License-Identifier: MIT
-- lua with its socket library: whole answers, and a socket of its own.
local http = require('socket.http')
local socket = require('socket')

local base = arg[1]
for _, path in ipairs({ '/', '/big.txt', '/missing', '/hello.txt' }) do
	local body, code = http.request(base .. path)
	print(path, code, #body)
end
local host, port = base:match('//([^:]+):(%d+)')
local connection = assert(socket.connect(host, tonumber(port)))
connection:settimeout(5)
connection:send('GET /hello.txt HTTP/1.0\r\n\r\n')
print((connection:receive('*a'):match('\r\n\r\n(.*)')))
connection:close()
