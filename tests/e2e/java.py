# SPDX-License-Identifier: MIT
"""Compiles the java client once for a test file."""
import os
import shutil
import subprocess
import tempfile

import harness


def compile_client(test_class, source='Client.java'):
	"""The class path; it is removed when the tests of the class are done."""
	directory = tempfile.mkdtemp(prefix='shunt-java-')
	test_class.addClassCleanup(shutil.rmtree, directory)
	subprocess.run(['javac', '-d', directory, os.path.join(harness.PROGRAMS, 'java', source)], check=True,
		stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
	return directory


def client(case, classes, kind, url, limit_ms=2000, **keywords):
	return harness.LongLived(case, ['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xmx128m', '-cp', classes,
		'Client', kind, url, str(limit_ms)], **keywords)
