"""Forks and lets the parent end, over and over, so that it never has one pid for long;
`in-new-sessions`: with setsid each time.
"""

import os
import sys

from announce import announce

if os.fork():
    sys.exit(0)
announce("runner")
while True:
    if os.fork():
        os._exit(0)
    if sys.argv[1] == "in-new-sessions":
        os.setsid()
