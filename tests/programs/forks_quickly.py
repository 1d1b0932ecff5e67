"""Forks as many sleeping children as its argument says, each of which forks another, as fast as
it can; half of them leave the session.
"""

import os
import signal
import sys
import time

from announce import announce

signal.signal(signal.SIGTERM, signal.SIG_IGN)
for place in range(int(sys.argv[1])):
    if os.fork() == 0:
        if place % 2:
            os.setsid()
        os.fork()
        while True:
            time.sleep(60)
announce("forker")
while True:
    time.sleep(60)
