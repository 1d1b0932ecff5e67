import json
import os
import signal
import sys
import time


def rss(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    pid, path = int(sys.argv[1]), sys.argv[2]
    # Ctrl-C in the terminal goes to the whole foreground group; the trainer decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(path, "a", buffering=1) as out:
        while os.path.exists(f"/proc/{pid}"):
            out.write(json.dumps({"time": time.time(), "rss": rss(pid)}) + "\n")
            time.sleep(1.0)


if __name__ == "__main__":
    main()
