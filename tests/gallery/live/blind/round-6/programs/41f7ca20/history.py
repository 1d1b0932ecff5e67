import json
import os


class RunHistory:
    """Everything that was logged in the run, kept as one readable file."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "history.json")
        self.rows = []

    def add(self, step, scalars, curves):
        self.rows.append({"step": step, **scalars, "curves": curves})
        self.flush()

    def flush(self):
        tmp = self.path + ".tmp"
        with open(tmp, "w") as f:
            json.dump(self.rows, f, indent=1, sort_keys=True)
            f.flush()
            os.fsync(f.fileno())
        os.replace(tmp, self.path)

    def smoothed(self, key, beta=0.98):
        v = None
        for r in json.loads(json.dumps(self.rows)):
            v = r[key] if v is None else beta * v + (1 - beta) * r[key]
        return v
