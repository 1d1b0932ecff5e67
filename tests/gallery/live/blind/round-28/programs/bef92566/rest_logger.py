import json
import os
import time
import urllib.request

from lightning.pytorch.loggers.logger import Logger, rank_zero_experiment
from lightning.pytorch.utilities import rank_zero_only


class RestClient:
    def __init__(self, base):
        self.base = base

    def post(self, path, payload):
        req = urllib.request.Request(self.base + path, data=json.dumps(payload).encode(),
                                     headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(req, timeout=120) as resp:
            return json.loads(resp.read() or b"{}")


class RestLogger(Logger):
    def __init__(self, experiment_name):
        super().__init__()
        self._name = experiment_name
        self._client = None

    @property
    @rank_zero_experiment
    def experiment(self):
        if self._client is None:
            path = os.environ["TRACKING_PORT_FILE"]
            while not os.path.exists(path):
                time.sleep(0.1)
            with open(path) as f:
                self._client = RestClient(f"http://127.0.0.1:{f.read().strip()}/api/2.0/runs/")
        return self._client

    @property
    def name(self):
        return self._name

    @property
    def version(self):
        return "0"

    @rank_zero_only
    def log_hyperparams(self, params, *args, **kwargs):
        self.experiment.post("log-batch", {"params": {k: str(v) for k, v in dict(params).items()}})

    @rank_zero_only
    def log_metrics(self, metrics, step=None):
        for key, value in metrics.items():
            self.experiment.post("log-metric", {"key": key, "value": float(value), "step": step})
