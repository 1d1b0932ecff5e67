"""Stream one object of the bucket to stdout in parts, at the rate the gateway grants."""
import sys
import time

PART = 16 * 1024
RATE = 32 * 1024  # bytes per second and connection

with open(sys.argv[1], "rb") as f:
    while part := f.read(PART):
        sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
        time.sleep(PART / RATE)
