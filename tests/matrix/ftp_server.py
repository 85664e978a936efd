# SPDX-License-Identifier: MIT
"""ftp_server.py PORT DIRECTORY: everybody may read and write there."""
import logging
import sys

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer

logging.basicConfig(level=logging.CRITICAL)
authorizer = DummyAuthorizer()
authorizer.add_anonymous(sys.argv[2], perm='elradfmwMT')
FTPHandler.authorizer = authorizer
FTPServer(('127.0.0.1', int(sys.argv[1])), FTPHandler).serve_forever()
