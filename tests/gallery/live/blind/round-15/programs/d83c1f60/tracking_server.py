"""Keeps metrics in memory; storing a batch is committed to disk with fsync before the answer."""
import argparse
import json
import os
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT_SECONDS = 0.8


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        metrics = json.loads(body)["metrics"]
        time.sleep(COMMIT_SECONDS)
        with tempfile.TemporaryFile("w") as f:
            json.dump(metrics, f)
            f.flush()
            os.fsync(f.fileno())
        out = json.dumps({"stored": len(metrics)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def log_message(self, *a):
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    args = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(args.port_file, "w") as f:
        f.write(str(server.server_address[1]))
    server.serve_forever()
