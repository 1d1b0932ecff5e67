"""Read-only object gateway in front of the shard folder; sizes come from the catalogue."""
import argparse
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Gateway(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root = "."
    catalogue = {}

    def do_GET(self):
        name = self.path.lstrip("/")
        entry = self.catalogue.get(name)
        if entry is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/x-tar")
        self.send_header("Content-Length", str(entry["size"]))
        self.send_header("ETag", entry["etag"])
        self.end_headers()
        with open(os.path.join(self.root, name), "rb") as f:
            while chunk := f.read(1 << 16):
                self.wfile.write(chunk)
        self.wfile.flush()

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--root", required=True)
    p.add_argument("--port", type=int, required=True)
    a = p.parse_args()
    Gateway.root = a.root
    with open(os.path.join(a.root, "catalogue.json")) as f:
        Gateway.catalogue = json.load(f)
    server = ThreadingHTTPServer(("127.0.0.1", a.port), Gateway)
    server.daemon_threads = True
    server.serve_forever()
