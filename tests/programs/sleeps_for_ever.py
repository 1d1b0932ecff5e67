"""Sleeps, and does nothing else."""

import time

from announce import announce

announce("asleep")
while True:
    time.sleep(60)
