"""Forks twice with setsid between, as daemons do, ignores SIGTERM, and ends with exit code 0
while the daemon stays.
"""

import os
import signal
import sys
import time

from announce import announce

if os.fork():
    os.wait()
    sys.exit(0)
os.setsid()
if os.fork():
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
announce("daemon")
while True:
    time.sleep(60)
