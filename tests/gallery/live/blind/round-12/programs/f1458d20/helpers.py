import atexit
import os
import signal
import subprocess
import sys
import tempfile


class HelperProcess:
    """A child that lives as long as the trainer and is closed with it."""

    def __init__(self, script, *args):
        here = os.path.dirname(os.path.abspath(__file__))
        self.proc = subprocess.Popen([sys.executable, os.path.join(here, script), *map(str, args)])
        atexit.register(self.close)

    def close(self):
        if self.proc.poll() is None:
            os.kill(self.proc.pid, signal.SIGINT)
            os.waitpid(self.proc.pid, 0)


def watch_memory():
    fd, path = tempfile.mkstemp(prefix="rss-", suffix=".jsonl")
    os.close(fd)
    return HelperProcess("memwatch.py", os.getpid(), path)
