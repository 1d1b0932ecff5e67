import json
import multiprocessing as mp
import queue
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.3 + len(body) / 4000)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


def serve(conn):
    server = HTTPServer(("127.0.0.1", 0), Handler)
    conn.send(server.server_port)
    conn.close()
    server.serve_forever()


class Tracker:
    """Sends metrics to a small collector next to the run, in the background."""

    def __init__(self):
        ours, theirs = mp.get_context("spawn").Pipe()
        self.server = mp.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
        self.server.start()
        self.port = ours.recv()
        self.items = queue.Queue(maxsize=1000)
        threading.Thread(target=self._send, name="tracker", daemon=True).start()

    def _send(self):
        while True:
            rows = [self.items.get()]
            while not self.items.empty():
                rows.append(self.items.get_nowait())
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}/", json.dumps(rows).encode())
            try:
                urllib.request.urlopen(request, timeout=30).read()
            except OSError as e:
                print(f"tracker: {e}", flush=True)

    def log(self, **row):
        try:
            self.items.put_nowait(row)
        except queue.Full:
            pass
