"""Goes on after SIGTERM, SIGINT and SIGHUP."""

import signal
import time

from announce import announce

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
announce("deaf")
while True:
    time.sleep(60)
