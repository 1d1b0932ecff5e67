import json
import os
import signal
import threading
import time


class RunLog:
    def __init__(self, directory, heartbeat=2.0):
        os.makedirs(directory, exist_ok=True)
        self.path = os.path.join(directory, "events.jsonl")
        self.state_path = os.path.join(directory, "heartbeat.json")
        self.lock = threading.Lock()
        self.recent, self.count, self.step = [], 0, 0
        self.file = open(self.path, "a")
        self.ring = threading.Thread(target=self._rotate, name="runlog-rotate", daemon=True)
        self.ring.start()
        self.heartbeat = heartbeat
        signal.signal(signal.SIGALRM, self._heartbeat)
        signal.setitimer(signal.ITIMER_REAL, heartbeat)

    def _rotate(self):
        while True:
            time.sleep(5)
            with self.lock:
                if self.file.tell() > 64 << 20:
                    self.file.close()
                    os.replace(self.path, self.path + ".1")
                    self.file = open(self.path, "a")

    def log(self, step, **scalars):
        with self.lock:
            self.step = step
            self.recent = (self.recent + [dict(step=step, t=time.time(), **scalars)])[-400:]
            self.count += 1
            self.file.write(json.dumps(self.recent[-1]) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())

    def summary(self):
        with self.lock:
            keys = {k for r in self.recent for k in r if k not in ("step", "t")}
            return {k: sum(r[k] for r in self.recent if k in r) / len(self.recent) for k in sorted(keys)}

    def _heartbeat(self, signum, frame):
        with self.lock:
            body = {"pid": os.getpid(), "step": self.step, "events": self.count, "time": time.time()}
        tmp = self.state_path + ".tmp"
        with open(tmp, "w") as f:
            json.dump(body, f)
        os.replace(tmp, self.state_path)
        signal.setitimer(signal.ITIMER_REAL, self.heartbeat)
