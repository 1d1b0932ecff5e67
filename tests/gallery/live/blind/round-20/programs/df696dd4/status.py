import os
import signal

from metrics import write_status


class StatusReporter:
    """Refreshes status.json for the job dashboard on a timer."""

    def __init__(self, store, run_dir, every=2):
        self.store = store
        self.path = os.path.join(run_dir, "status.json")
        self.every = every

    def start(self):
        signal.signal(signal.SIGALRM, self._tick)
        signal.alarm(self.every)

    def _tick(self, signum, frame):
        write_status(self.store, self.path)
        signal.alarm(self.every)

    def stop(self):
        signal.alarm(0)
        write_status(self.store, self.path)
