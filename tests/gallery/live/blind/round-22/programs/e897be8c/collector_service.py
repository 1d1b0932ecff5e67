"""Small self-hosted metrics collector: POST /v1/scalars, one plan per workspace."""
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Plan:
    def __init__(self, requests, window):
        self.requests, self.window = requests, window
        self.used, self.since = 0, time.monotonic()
        self.cond = threading.Condition()

    def admit(self):
        with self.cond:
            while True:
                left = self.since + self.window - time.monotonic()
                if left <= 0:
                    self.used, self.since = 0, time.monotonic()
                if self.used < self.requests:
                    self.used += 1
                    return
                self.cond.wait(max(left, 0.1))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    plan = Plan(requests=75, window=3600.0)
    rows = []

    def do_POST(self):
        row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.plan.admit()
        self.rows.append(row)
        body = json.dumps({"stored": len(self.rows)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    sys.stdout.close()
    server.serve_forever()
