import logging
import os
import queue
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import torch

log = logging.getLogger("sideband")


class CheckpointWriter(threading.Thread):
    def __init__(self, folder):
        super().__init__(name="ckpt-writer", daemon=True)
        self.folder = folder
        self.jobs = queue.Queue(maxsize=2)

    def submit(self, name, state):
        self.jobs.put((name, {k: v.detach().clone() for k, v in state.items()}))

    def run(self):
        while True:
            name, state = self.jobs.get()
            if name is None:
                break
            path = os.path.join(self.folder, name)
            torch.save(state, path + ".part")
            time.sleep(1.5)
            os.replace(path + ".part", path)
            log.info("wrote %s", path)

    def finish(self):
        self.jobs.put((None, None))
        self.join()


class Status(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(0.4)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


class Tracker(threading.Thread):
    def __init__(self):
        super().__init__(name="tracker", daemon=True)
        self.server = HTTPServer(("127.0.0.1", 0), Status)
        threading.Thread(target=self.server.serve_forever, name="status-http", daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.pending = queue.Queue()
        self.done = threading.Event()

    def log(self, **values):
        self.pending.put(values)

    def run(self):
        while not self.done.wait(2.0):
            batch = []
            while not self.pending.empty():
                batch.append(self.pending.get())
            if batch:
                req = urllib.request.Request(self.url, data=repr(batch).encode(), method="POST")
                urllib.request.urlopen(req, timeout=30).read()
