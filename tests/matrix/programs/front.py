# SPDX-License-Identifier: MIT
"""A WSGI application that asks the server behind it for whatever it is asked for."""
import os
import urllib.error
import urllib.request


def application(environ, start_response):
	try:
		with urllib.request.urlopen(os.environ['URL'] + environ['PATH_INFO']) as answer:
			status, body = '200 OK', answer.read()
	except urllib.error.HTTPError as error:
		status, body = f'{error.code} {error.reason}', error.read()
	start_response(status, [('Content-Type', 'text/plain'), ('Content-Length', str(len(body)))])
	return [body]
