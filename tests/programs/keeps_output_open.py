"""Ends at once with exit code 0, but leaves a child that holds its output open and writes on."""

import os
import sys
import time

from announce import announce

if os.fork():
    print("my last word", flush=True)
    sys.exit(0)
announce("holder")
while True:
    os.write(1, b"not quite\n")
    time.sleep(0.01)
