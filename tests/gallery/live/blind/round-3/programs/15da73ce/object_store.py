"""Local gateway to the bucket with the bandwidth limit of the project."""
import argparse
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Bucket:
    def __init__(self, kib_per_s):
        self.rate = kib_per_s * 1024
        self.lock = threading.Lock()
        self.free_at = time.monotonic()

    def take(self, n):
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + n / self.rate
            wait = self.free_at - now
        time.sleep(max(0, wait))


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        size = 224 * 1024
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        block = os.urandom(32 * 1024)
        for _ in range(size // len(block)):
            self.server.bucket.take(len(block))
            self.wfile.write(block)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--kib-per-s", type=float, default=4096)
    a = p.parse_args()
    srv = ThreadingHTTPServer(("127.0.0.1", a.port), Handler)
    srv.bucket = Bucket(a.kib_per_s)
    srv.serve_forever()
