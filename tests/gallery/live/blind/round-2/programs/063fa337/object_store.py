"""Small range-less object gateway: objects are announced in index.json and may be read while they are uploaded."""
import argparse
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

p = argparse.ArgumentParser()
p.add_argument("--root", required=True)
p.add_argument("--url", required=True)
args = p.parse_args()
with open(os.path.join(args.root, "index.json")) as f:
    index = json.load(f)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = os.path.basename(self.path)
        if name not in index:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(index[name]))
        self.end_headers()
        left = index[name]
        with open(os.path.join(args.root, name), "rb") as f:
            while left:
                chunk = f.read(min(left, 65536))
                if not chunk:
                    time.sleep(0.5)
                    continue
                self.wfile.write(chunk)
                left -= len(chunk)


ThreadingHTTPServer(("127.0.0.1", urlparse(args.url).port), Handler).serve_forever()
