"""Small metrics store: POST /api/log appends a record, GET /api/summary reads it back."""
import argparse
import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _reply(self, payload):
        body = json.dumps(payload).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        n = int(self.headers.get("Content-Length", 0))
        record = json.loads(self.rfile.read(n))
        with open(os.path.join(self.server.root, "metrics.jsonl"), "a") as f:
            f.write(json.dumps(record) + "\n")
        self._reply({"ok": True})

    def do_GET(self):
        path = os.path.join(self.server.root, "metrics.jsonl")
        rows = sum(1 for _ in open(path)) if os.path.exists(path) else 0
        self._reply({"rows": rows})


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--root", default="runs")
    a = p.parse_args()
    httpd = HTTPServer(("127.0.0.1", a.port), Handler)
    httpd.root = a.root
    httpd.serve_forever()


if __name__ == "__main__":
    main()
