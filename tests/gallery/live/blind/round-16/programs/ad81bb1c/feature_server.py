import argparse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

import numpy as np

DIM = 40
pool = np.random.default_rng(0).standard_normal((4000, DIM)).astype("float32")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlparse(self.path)
        if url.path == "/health":
            body = b"ok"
        else:
            frames = [int(x) for x in parse_qs(url.query)["frames"][0].split(",")]
            start = int(parse_qs(url.query)["seed"][0]) % 2000
            body = np.concatenate([pool[start:start + n] for n in frames]).tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *a):
        pass


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    ThreadingHTTPServer(("127.0.0.1", p.parse_args().port), Handler).serve_forever()
