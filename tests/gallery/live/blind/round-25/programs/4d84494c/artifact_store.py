import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MULTIPART_BYTES = 32 * 1024


class Store:
    def __init__(self, upload_slots=2):
        self.slots = threading.Semaphore(upload_slots)
        self.sizes = {}

    def put_small(self, key, body):
        self.sizes[key] = len(body)

    def put_multipart(self, key, body):
        self.slots.acquire()
        parts = [body[i:i + MULTIPART_BYTES] for i in range(0, len(body), MULTIPART_BYTES)]
        self.sizes[key] = sum(len(p) for p in parts)


class Handler(BaseHTTPRequestHandler):
    store = Store()

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if len(body) > MULTIPART_BYTES:
            self.store.put_multipart(self.path, body)
        else:
            self.store.put_small(self.path, body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
