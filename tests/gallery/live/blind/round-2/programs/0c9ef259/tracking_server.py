import argparse
import json
import random
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

p = argparse.ArgumentParser()
p.add_argument("--uri", required=True)
args = p.parse_args()
runs = {}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        runs.setdefault(body["run"], []).append(body)
        time.sleep(random.uniform(0.35, 0.6))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *a):
        pass


ThreadingHTTPServer(("127.0.0.1", urlparse(args.uri).port), Handler).serve_forever()
