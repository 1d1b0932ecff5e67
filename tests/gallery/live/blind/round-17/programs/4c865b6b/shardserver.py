"""Serves token shards over HTTP at a limited rate, like a busy object store."""
import random
import struct
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        rng = random.Random(self.path)
        values = []
        for _ in range(640):
            start, stride = rng.randrange(128), rng.randrange(1, 6)
            values += [(start + stride * i) % 128 for i in range(33)]
        body = struct.pack(f"{len(values)}H", *values)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for i in range(0, len(body), 4096):
            self.wfile.write(body[i:i + 4096])
            time.sleep(0.05)

    def log_message(self, *args):
        pass


def serve(conn):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    conn.send(server.server_address[1])
    server.serve_forever()
