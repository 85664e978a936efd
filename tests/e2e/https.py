# SPDX-License-Identifier: MIT
"""The story of HTTPS, for each client and each kind of handshake.

A server that shakes hands and then never answers is a failing server; one that answers after two
seconds is a healthy one; and session tickets are no answers.
"""
import os
import shutil
import subprocess
import tempfile
import time

import harness
from servers import tls_context

SLEEP = 2.0
KINDS = {
	'tls_1_2': dict(version='1.2'),
	'tls_1_3_without_tickets': dict(version='1.3', tickets=0),
	'tls_1_3_with_one_ticket': dict(version='1.3', tickets=1),
	'tls_1_3_with_two_tickets': dict(version='1.3', tickets=2),
}


class Https(harness.Case):
	"""Subclasses say how to make `count` calls side by side; a call gives up after `patience`
	seconds and prints the server's body when it succeeds."""

	patience = 2    # after which a call gives up on a server that hangs
	apart = False   # does the server write header and body apart

	def calls(self, count, patience):
		raise NotImplementedError

	def prepare(self):
		"""Called once the server's port is known."""

	@classmethod
	def setUpClass(cls):
		cls.directory = tempfile.mkdtemp(prefix='shunt-tls-')
		cls.addClassCleanup(shutil.rmtree, cls.directory)
		cls.certificate = os.path.join(cls.directory, 'certificate.pem')
		cls.key = os.path.join(cls.directory, 'key.pem')
		subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost',
			'-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', cls.key, '-out', cls.certificate],
			check=True, stderr=subprocess.DEVNULL)

	def begin(self, kind):
		self.target = self.server(tls=tls_context(self.certificate, self.key, **KINDS[kind]), apart=self.apart)
		self.port = self.target.port
		self.url = f'https://127.0.0.1:{self.port}/'
		# Two healthy calls and two slow ones count as well: four errors of eight are half.
		self.rules['TLS'] = f'127.0.0.1:{self.port} volume=8 errors=50% sleep={int(SLEEP)}s window=60s'
		self.witness = self.wire(self.port)
		self.prepare()

	def assertWork(self, results):
		for result in results:
			self.assertEqual(result.returncode, 0, result)
			self.assertIn('hello from the server', result.text)

	def tell(self, kind):
		self.begin(kind)
		self.target.healthy()
		# With either patience: a virtual machine that is still cold would use up the shorter one.
		self.assertWork(self.calls(1, 8) + self.calls(1, self.patience))
		self.assertTotals({'success': 2, 'failure': 0, 'timeout': 0}, name='TLS')

		self.target.slow(2)
		self.assertWork(self.calls(2, 8))
		self.assertTotals({'success': 4, 'failure': 0, 'timeout': 0}, name='TLS')

		self.target.silent()
		for result in self.calls(4, self.patience):
			self.assertNotEqual(result.returncode, 0, result)
		tripped = time.monotonic()
		self.assertTotals({'success': 4, 'failure': 0, 'timeout': 4, 'trips': 1}, name='TLS')
		self.assertState('open', name='TLS')
		if not harness.BARE:
			self.half_open(tripped)

	def half_open(self, tripped):
		"""The handshake of the probe succeeds, and closes nothing."""
		refused = self.calls(1, self.patience)
		self.assertAtOnce(refused)
		self.assertTrue(self.witness.quiet(tripped), self.witness.attempts(tripped))
		self.wait_for_probe(name='TLS')
		handshakes = self.target.handshakes
		self.calls(1, self.patience)
		self.assertEqual(self.target.handshakes, handshakes + 1)
		reopened = time.monotonic()
		self.assertState('open', name='TLS')
		self.assertTotals({'success': 4, 'timeout': 5}, name='TLS')
		self.target.healthy()
		self.wait_for_probe(name='TLS')
		self.assertWork(self.calls(1, 8))
		self.assertState('closed', name='TLS')
		self.assertTotals({'success': 5, 'timeout': 5}, name='TLS')

	def test_tls_1_2(self):
		self.tell('tls_1_2')

	def test_tls_1_3_without_tickets(self):
		self.tell('tls_1_3_without_tickets')

	def test_tls_1_3_with_one_ticket(self):
		self.tell('tls_1_3_with_one_ticket')

	def test_tls_1_3_with_two_tickets(self):
		self.tell('tls_1_3_with_two_tickets')
