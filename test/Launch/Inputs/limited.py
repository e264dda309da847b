"""Runs a command that may write no file larger than so many bytes, as if the disk were full: limited.py BYTES COMMAND..."""

import os
import resource
import sys

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
os.execvp(sys.argv[2], sys.argv[2:])
