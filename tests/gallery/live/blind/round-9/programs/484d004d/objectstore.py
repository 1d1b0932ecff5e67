import argparse
import io
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

CHUNK = 1 << 17


class Handler(BaseHTTPRequestHandler):
    rate = 0.8e6

    def do_GET(self):
        n = int(self.path.rsplit("-", 1)[1].split(".")[0])
        rng = np.random.default_rng(n)
        lens = rng.integers(60, 240, size=700)
        buf = io.BytesIO()
        np.savez(buf, lens=lens, feats=rng.standard_normal((int(lens.sum()), 8)).astype(np.float32))
        body = buf.getvalue()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for k in range(0, len(body), CHUNK):
            self.wfile.write(body[k : k + CHUNK])
            time.sleep(CHUNK / self.rate)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    ThreadingHTTPServer(("127.0.0.1", p.parse_args().port), Handler).serve_forever()
