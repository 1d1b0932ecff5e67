import json
import logging
import os
import socket
import time
import urllib.error
import urllib.request

import numpy as np

log = logging.getLogger("features")
DIM = 16


class FeatureClient:
    def __init__(self, timeout=1.0, retries=2):
        self.url = f"http://127.0.0.1:{os.environ['FEATURE_PORT']}/lookup"
        self.timeout = timeout
        self.retries = retries
        self.recent = {}

    def lookup(self, ids):
        body = json.dumps(ids).encode()
        for attempt in range(self.retries):
            try:
                req = urllib.request.Request(self.url, data=body)
                with urllib.request.urlopen(req, timeout=self.timeout) as r:
                    feats = np.frombuffer(r.read(), dtype=np.float32).reshape(len(ids), DIM)
                self.recent.update(zip(ids, feats))
                return feats
            except (urllib.error.URLError, socket.timeout, ConnectionError) as e:
                log.debug("lookup attempt %d: %s", attempt, e)
                time.sleep(0.05 * 2**attempt)
        zero = np.zeros(DIM, dtype=np.float32)
        return np.stack([self.recent.get(i, zero) for i in ids])
