"""Serves the image URLs of the list from the lab's mirror; camera URLs are passed through as they are."""
import argparse
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        if self.path.startswith("/cam/"):
            while True:
                self.wfile.write(b"\xff\xd8" + b"\0" * 200)
                self.wfile.flush()
                time.sleep(0.5)
        body = zlib.compress(self.path.encode() * 50) * 60
        self.wfile.write(body)

    def log_message(self, *a):
        pass


p = argparse.ArgumentParser()
p.add_argument("--bind", required=True)
host, port = p.parse_args().bind.split(":")
ThreadingHTTPServer((host, int(port)), Handler).serve_forever()
