import http.client
import json
import time
import uuid


class RestStore:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def call(self, endpoint, payload):
        c = http.client.HTTPConnection(self.host, self.port)
        c.request("POST", "/api/2.0/runs/" + endpoint, json.dumps(payload), {"Content-Type": "application/json"})
        r = c.getresponse()
        out = json.loads(r.read())
        c.close()
        return out


class Run:
    def __init__(self, store):
        self.store, self.id = store, uuid.uuid4().hex[:12]

    def log(self, step, flush=False, **metrics):
        rows = [{"key": k, "value": float(v), "step": step, "timestamp": int(time.time() * 1000)} for k, v in metrics.items()]
        self.store.call("log-batch", {"run_id": self.id, "metrics": rows, "flush": flush})
