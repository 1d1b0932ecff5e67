"""Local run board: takes JSON points over HTTP and keeps the latest of each series."""
import argparse
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

SERIES = {}


class Board(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _reply(self, payload):
        body = json.dumps(payload).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for key, value in data["values"].items():
            SERIES.setdefault(f"{data['source']}/{key}", []).append((data["step"], value))
        self._reply({"ok": True})

    def do_GET(self):
        self._reply({key: points[-1] for key, points in SERIES.items()})

    def log_message(self, fmt, *args):
        pass


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, required=True)
    args = ap.parse_args()
    parent = os.getppid()
    server = HTTPServer(("127.0.0.1", args.port), Board)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while os.getppid() == parent:
        time.sleep(1.0)


if __name__ == "__main__":
    main()
