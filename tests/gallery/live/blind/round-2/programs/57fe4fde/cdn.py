import json
import random
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

start = time.time()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        busy = (time.time() - start) % 45 > 26
        if busy and random.random() < 0.9:
            time.sleep(random.uniform(0.2, 3))
            self.send_response(503)
            self.end_headers()
            return
        time.sleep(random.uniform(0.05, 0.5))
        n = int(self.path.rsplit("/", 1)[1])
        rng = random.Random(n)
        body = json.dumps([[rng.gauss(0, 1) for _ in range(12)] for _ in range(48)]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", urlparse(sys.argv[1]).port), Handler).serve_forever()
