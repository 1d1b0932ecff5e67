"""Writes numbered lines of 1 kB, as many MB as its argument says, between a first and a last
word.
"""

import os
import sys

megabytes = int(sys.argv[1])
os.write(1, b"the first word\n")
line = b"x" * 1015
for block in range(megabytes):
    os.write(1, b"".join(b"%08d%s\n" % (block * 1024 + number, line) for number in range(1024)))
os.write(1, b"the last word\n")
