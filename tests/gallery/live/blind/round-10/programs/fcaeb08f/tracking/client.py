import json
import logging
import random
import time
import urllib.error
import urllib.request

from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only

log = logging.getLogger(__name__)


class TrackerSession:
    def __init__(self, base_url, run):
        self.url = f"{base_url}/runs/{run}"

    def post(self, rows):
        data = json.dumps(rows).encode()
        attempt = 0
        while True:
            try:
                req = urllib.request.Request(self.url, data, {"Content-Type": "application/json"})
                with urllib.request.urlopen(req, timeout=10) as resp:
                    return json.load(resp)
            except urllib.error.HTTPError as err:
                if err.code not in (429, 502, 503):
                    raise
            except (urllib.error.URLError, TimeoutError):
                pass
            attempt += 1
            time.sleep(min(2 ** attempt, 30) + random.random())


class TrackerLogger(Logger):
    def __init__(self, base_url, run, buffer_rows=10):
        super().__init__()
        self._session = TrackerSession(base_url, run)
        self._run, self._buffer, self._rows = run, [], buffer_rows

    @property
    def name(self):
        return "tracker"

    @property
    def version(self):
        return self._run

    @rank_zero_only
    def log_hyperparams(self, params, *args, **kwargs):
        self._session.post([{"params": {k: str(v) for k, v in dict(params).items()}}])

    @rank_zero_only
    def log_metrics(self, metrics, step=None):
        self._buffer.append({"step": step, **metrics})
        if len(self._buffer) >= self._rows:
            rows, self._buffer = self._buffer, []
            self._session.post(rows)

    @rank_zero_only
    def finalize(self, status):
        if self._buffer:
            self._session.post(self._buffer)
            self._buffer = []
