import os
import sys
import time


def main(path, rate):
    with open(path, "ab", buffering=0) as out:
        while chunk := os.read(0, 4096):
            out.write(chunk)
            time.sleep(len(chunk) / rate)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
