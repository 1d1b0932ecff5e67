import json
import os
import tempfile
import threading
import time


class Telemetry:
    """Collects rows from anywhere in the program and writes a rolling report."""

    def __init__(self, run, enabled=True):
        self.run, self.enabled = run, enabled
        self.lock = threading.Lock()
        self.rows = []
        self.path = os.path.join(tempfile.mkdtemp(prefix="telemetry-"), "report.json") if enabled else None

    def emit(self, kind, **fields):
        if not self.enabled:
            return
        row = {"kind": kind, "at": time.time(), **fields}
        with self.lock:
            self.rows.append(row)

    def write_report(self):
        if not self.enabled:
            return
        with self.lock:
            by_kind = {}
            for row in self.rows:
                series = by_kind.setdefault(row["kind"], [])
                series.append({"run": self.run, **row})
            with open(self.path + ".new", "w") as f:
                json.dump(by_kind, f)
            os.replace(self.path + ".new", self.path)
