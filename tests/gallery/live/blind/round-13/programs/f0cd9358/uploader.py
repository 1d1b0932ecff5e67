import os
import signal
import subprocess


class Uploader:
    """Packs finished checkpoints with a child process and keeps track of the running ones."""

    def __init__(self, writer):
        self.writer = writer
        self.running = {}
        signal.signal(signal.SIGCHLD, self._on_child)

    def submit(self, path):
        p = subprocess.Popen(["gzip", "-f", "-1", path])
        self.running[p.pid] = path

    def _on_child(self, signum, frame):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.writer.write("packed", path=self.running.pop(pid, None), status=os.waitstatus_to_exitcode(status))
