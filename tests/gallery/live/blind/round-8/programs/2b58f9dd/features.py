import json
import time
import urllib.error
import urllib.request

import torch


class FeatureClient:
    def __init__(self, address, part):
        self.base = f"http://{address}/features?part={part}&ids="

    def wait_ready(self):
        while True:
            try:
                self.fetch([0])
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.5)

    def fetch(self, ids):
        url = self.base + ",".join(map(str, ids))
        with urllib.request.urlopen(url, timeout=120) as reply:
            return torch.tensor(json.loads(reply.read()))
