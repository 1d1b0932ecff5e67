"""Writes one epoch of records into a named pipe, then waits for the next pipe name on stdin."""
import random
import struct
import sys
import time


def main():
    seed = int(sys.argv[1])
    rng = random.Random(seed)
    for line in sys.stdin:
        path, count = line.split()
        time.sleep(1.5)
        with open(path, "wb") as pipe:
            for _ in range(int(count)):
                values = [rng.gauss(0.0, 1.0) for _ in range(64)]
                pipe.write(struct.pack("<64f", *values))
                pipe.flush()
                time.sleep(0.004)


if __name__ == "__main__":
    main()
