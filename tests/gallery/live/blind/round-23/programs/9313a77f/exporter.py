import json
import multiprocessing as mp
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GAUGES = {}


class Metrics(BaseHTTPRequestHandler):
    def do_GET(self):
        body = "".join(f"{k} {v}\n" for k, v in sorted(GAUGES.items())).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, name="metrics-http", daemon=True).start()
    return server.server_address[1]


def _writer(inbox, path):
    while True:
        item = inbox.get()
        if item is None:
            return
        with open(path, "a") as f:
            f.write(json.dumps(item) + "\n")


class EventWriter:
    def __init__(self, path):
        ctx = mp.get_context("spawn")
        self.inbox = ctx.Queue()
        self.proc = ctx.Process(target=_writer, args=(self.inbox, path), name="event-writer", daemon=True)
        self.proc.start()

    def put(self, **item):
        self.inbox.put(item)
