import http.server
import multiprocessing as mp
import os
import queue
import socket
import subprocess
import sys
import threading
import time


def _export_worker(conn):
    while True:
        job = conn.recv()
        if job is None:
            return
        path, payload = job
        with open(path, "w") as f:
            f.write(payload)
        conn.send(path)


def _page(port_box, ready):
    class H(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *a):
            pass

    srv = http.server.HTTPServer(("127.0.0.1", 0), H)
    port_box.append(srv.server_address[1])
    ready.set()
    srv.serve_forever()


class Services:
    """Things that wait for work beside the training loop."""

    def __init__(self, rank):
        ctx = mp.get_context("spawn")
        self.manager = ctx.Manager()
        self.shared = self.manager.dict()
        self.conn, child = ctx.Pipe()
        self.exporter = ctx.Process(target=_export_worker, args=(child,), daemon=True)
        self.exporter.start()
        self.uploads = queue.Queue(maxsize=4)
        self.stop = threading.Event()
        self.gate = threading.Lock()
        self.gate.acquire()
        for target, name in ((self._uploader, "uploader"), (self._monitor, "tqdm-monitor"), (self._on_demand, "profiler")):
            threading.Thread(target=target, name=name, daemon=True).start()
        box, ready = [], threading.Event()
        threading.Thread(target=_page, args=(box, ready), name="status-page", daemon=True).start()
        ready.wait()
        self.page = box[0]
        self.shell = subprocess.Popen([sys.executable, "-c", "import sys\nfor line in sys.stdin: pass"],
                                      stdin=subprocess.PIPE)
        subprocess.Popen(["true"])
        self.a, self.b = socket.socketpair()
        threading.Thread(target=lambda: self.b.recv(1), name="wakeup", daemon=True).start()

    def _uploader(self):
        while True:
            name = self.uploads.get()
            time.sleep(0.5)
            self.shared["last_upload"] = name

    def _monitor(self):
        while not self.stop.wait(10):
            pass

    def _on_demand(self):
        with self.gate:
            pass

    def export(self, path, payload):
        self.conn.send((path, payload))
        return self.conn.recv()
