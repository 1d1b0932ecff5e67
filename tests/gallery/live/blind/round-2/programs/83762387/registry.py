import hashlib
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

BLOB = hashlib.sha256(b"weights").digest() * 4096


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.endswith(".sha256"):
            body = hashlib.sha256(BLOB + b"\n").hexdigest().encode()
        else:
            time.sleep(4)
            body = BLOB
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", urlparse(sys.argv[1]).port), Handler).serve_forever()
