import http.client
import json
import time

import torch


class TeacherClient:
    def __init__(self, port, k=8):
        self.conn = http.client.HTTPConnection("127.0.0.1", port)
        self.k = k

    def _call(self, method, path, body=None):
        self.conn.request(method, path, body, {"Content-Type": "application/json"})
        return json.loads(self.conn.getresponse().read())

    def wait_ready(self, tries=60):
        for _ in range(tries):
            try:
                return self._call("GET", "/health")
            except ConnectionRefusedError:
                self.conn.close()
                time.sleep(1)
        raise RuntimeError("teacher service did not come up")

    def topk(self, ids):
        out = self._call("POST", "/topk", json.dumps({"ids": ids.tolist(), "k": self.k}))
        return torch.tensor(out["index"]), torch.tensor(out["logit"])
