import json
import os
import time
import urllib.request


class Tracker:
    def __init__(self, run):
        self.run = run
        self.url = os.environ["TRACKING_URI"] + "/api/2.0/runs/log-metric"

    def log_metric(self, key, value, step):
        body = {"run": self.run, "key": key, "value": value, "step": step, "timestamp": int(time.time() * 1000)}
        req = urllib.request.Request(self.url, data=json.dumps(body).encode())
        with urllib.request.urlopen(req, timeout=60) as r:
            r.read()

    def log_metrics(self, metrics, step):
        for k, v in metrics.items():
            self.log_metric(k, v, step)
