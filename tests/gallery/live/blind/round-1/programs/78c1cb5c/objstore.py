"""Local stand-in for the object store: GET /<bucket>/<shard>.npy"""
import argparse
import io
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


class Egress:
    """Daily traffic allowance per bucket."""

    def __init__(self, allowance):
        self.allowance = allowance
        self.used = {}
        self.lock = threading.Lock()

    def take(self, bucket, n):
        while True:
            window = int(time.time() // 86400)
            with self.lock:
                used = self.used.get((bucket, window), 0)
                if used + n <= self.allowance.get(bucket, 1 << 40):
                    self.used[bucket, window] = used + n
                    return
            time.sleep(1.0)


class Handler(BaseHTTPRequestHandler):
    egress = None

    def log_message(self, *args):
        pass

    def do_GET(self):
        bucket, name = self.path.strip("/").split("/")
        rng = np.random.default_rng(abs(hash((bucket, name))) % (1 << 32))
        buf = io.BytesIO()
        np.save(buf, rng.standard_normal((256, 128), dtype=np.float32))
        body = buf.getvalue()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for i in range(0, len(body), 16384):
            part = body[i : i + 16384]
            self.egress.take(bucket, len(part))
            self.wfile.write(part)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, default=18917)
    ap.add_argument("--allow", nargs="*", default=[])
    args = ap.parse_args()
    Handler.egress = Egress({k: int(v) for k, v in (a.split("=") for a in args.allow)})
    ThreadingHTTPServer(("127.0.0.1", args.port), Handler).serve_forever()
