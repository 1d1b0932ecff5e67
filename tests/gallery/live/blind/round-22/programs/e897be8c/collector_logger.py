import http.client
import json
import os
import subprocess
import sys
import time

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

HERE = os.path.dirname(os.path.abspath(__file__))


def start_service():
    proc = subprocess.Popen(
        [sys.executable, os.path.join(HERE, "collector_service.py")], stdout=subprocess.PIPE, text=True
    )
    return int(proc.stdout.readline())


class CollectorLogger(Logger):
    def __init__(self, project, port):
        super().__init__()
        self.project, self.port = project, port
        self._conn = None

    @property
    def name(self):
        return self.project

    @property
    def version(self):
        return "0"

    @rank_zero_only
    def log_hyperparams(self, params, *args, **kwargs):
        self._send({"project": self.project, "params": {k: str(v) for k, v in dict(params).items()}})

    @rank_zero_only
    def log_metrics(self, metrics, step=None):
        self._send({"project": self.project, "step": step, "at": time.time(), "scalars": metrics})

    def _send(self, row):
        if self._conn is None:
            self._conn = http.client.HTTPConnection("127.0.0.1", self.port)
        self._conn.request("POST", "/v1/scalars", json.dumps(row), {"Content-Type": "application/json"})
        response = self._conn.getresponse()
        return json.loads(response.read())
