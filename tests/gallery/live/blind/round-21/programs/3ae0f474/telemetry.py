import queue
import threading
import time


class Telemetry(threading.Thread):
    """Collects scalars and prints an aggregate now and then."""

    def __init__(self, every=8):
        super().__init__(name="telemetry", daemon=True)
        self.inbox, self.every, self.rows = queue.Queue(), every, []

    def log(self, **row):
        self.inbox.put(row)

    def run(self):
        while True:
            self.rows.append(self.inbox.get())
            if len(self.rows) >= self.every:
                last = self.rows[-1]
                mean = sum(r["reward"] for r in self.rows) / len(self.rows)
                print(f"{time.strftime('%H:%M:%S')} iter {last['it']} reward {mean:.3f} loss {last['loss']:.4f} "
                      f"turns {last['turns']}", flush=True)
                self.rows = []
