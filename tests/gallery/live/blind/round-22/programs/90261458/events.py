"""Per-step events go through a FIFO to a small writer process; a thread waits for stop requests."""
import os
import subprocess
import sys
import threading

WRITER = """
import sys
n = 0
with open(sys.argv[1]) as f:
    for line in f:
        n += 1
"""


class EventPipe:
    def __init__(self, run_dir):
        path = os.path.join(run_dir, "events.fifo")
        os.mkfifo(path)
        self.proc = subprocess.Popen([sys.executable, "-c", WRITER, path])
        self.out = open(path, "w", buffering=1)

    def emit(self, **kw):
        self.out.write(repr(kw) + "\n")


class StopRequest:
    def __init__(self):
        self.flag = threading.Event()
        self.thread = threading.Thread(target=self.flag.wait, name="stop-request", daemon=True)
        self.thread.start()

    def is_set(self):
        return self.flag.is_set()
