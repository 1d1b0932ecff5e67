import random
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

rng = random.Random(4)


class H(BaseHTTPRequestHandler):
    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        code = 503 if rng.random() < 0.4 else 200
        self.send_response(code, "Slow Down" if code == 503 else "OK")
        self.send_header("Content-Length", "0")
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
