"""Serves token rows by number; answers 503 while an index refresh is running."""
import argparse
import os
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

state = {"refresh_until": 0.0}
tokens = np.random.default_rng(0).integers(0, 600, (8192, 48)).astype(np.int32)
tokens[:, 1::2] = tokens[:, 0::2]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if time.time() < state["refresh_until"]:
            self.send_response(503)
            self.send_header("Retry-After", "0.2")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        time.sleep(random.uniform(0.005, 0.02))
        rows = [int(i) % len(tokens) for i in self.path.rsplit("/", 1)[1].split(",")]
        body = tokens[rows].tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *a):
        pass


def refresh_loop():
    while True:
        time.sleep(20)
        state["refresh_until"] = time.time() + 0.6


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    args = parser.parse_args()
    threading.Thread(target=refresh_loop, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(args.port_file + ".part", "w") as f:
        f.write(str(server.server_address[1]))
    os.replace(args.port_file + ".part", args.port_file)
    server.serve_forever()
