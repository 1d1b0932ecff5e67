"""small stand-in for the experiment tracker's local process"""
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

uploads = threading.Semaphore(3)      # upload slots for media, freed by the (remote) backend


class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        b = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "boxes" in b:
            uploads.acquire()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, fmt, *a):
        print(fmt % a, flush=True)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
