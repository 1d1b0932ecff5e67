"""Local run tracker: keeps metrics and copies artifacts into the run store."""
import json
import os
import queue
import shutil
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STORE = sys.argv[1]
items = queue.Queue()
state = {"pending": 0, "rows": 0}
lock = threading.Lock()


def uploader():
    while True:
        path = items.get()
        with open(path, "rb") as src, open(os.path.join(STORE, os.path.basename(path)), "wb") as dst:
            while chunk := src.read(16384):
                dst.write(chunk)
                time.sleep(0.05)
        with lock:
            state["pending"] -= 1


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def _reply(self, obj):
        body = json.dumps(obj).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with lock:
            self._reply(dict(state))

    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with lock:
            if self.path == "/artifact":
                state["pending"] += 1
                items.put(data["path"])
            else:
                state["rows"] += 1
        self._reply({"ok": True})


os.makedirs(STORE, exist_ok=True)
threading.Thread(target=uploader, daemon=True).start()
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
