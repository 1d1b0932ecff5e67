"""Small metrics collector for the team: POST /runs/NAME with JSON rows."""
import argparse
import json
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RUNS = defaultdict(list)
USAGE = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        rows = json.loads(body)
        now = time.time()
        since, used = USAGE.get(self.path, (now, 0))
        if now - since > 3600:
            since, used = now, 0
        if used + len(rows) > self.server.quota:
            return self._reply(429, {"error": "rate limit exceeded", "limit": self.server.quota, "per": "hour"})
        USAGE[self.path] = (since, used + len(rows))
        RUNS[self.path].extend(rows)
        self._reply(200, {"stored": len(rows)})

    def _reply(self, code, payload):
        data = json.dumps(payload).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, required=True)
    ap.add_argument("--quota", type=int, default=60, help="rows per run and hour")
    args = ap.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    server.quota = args.quota
    server.serve_forever()
