import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np

DIM = 16


class Features:
    def __init__(self, n=20000):
        rng = np.random.default_rng(4)
        self.table = rng.standard_normal((n, DIM)).astype(np.float32)
        self.hits = 0
        self.started = time.time()

    def lookup(self, ids):
        self.hits += len(ids)
        return self.table[np.asarray(ids) % len(self.table)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = None

    def _reply(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        ids = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._reply(self.store.lookup(ids).tobytes(), "application/octet-stream")

    def do_GET(self):
        up = time.time() - self.store.started
        body = json.dumps({"rows": len(self.store.table), "hits": self.store.hits, "uptime": round(up, 1)})
        self._reply(body.encode(), "application/json")

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    a = p.parse_args()
    Handler.store = Features()
    HTTPServer(("127.0.0.1", a.port), Handler).serve_forever()
