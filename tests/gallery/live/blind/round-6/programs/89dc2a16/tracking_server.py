import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ConnectionPool:
    """Handles to the metric store; at most `size` of them."""

    def __init__(self, path, size):
        self.path = path
        self.slots = threading.Semaphore(size)

    def acquire(self):
        self.slots.acquire()
        return open(self.path, "a")

    def release(self, fh):
        fh.close()
        self.slots.release()


class Handler(BaseHTTPRequestHandler):
    pool = None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fh = self.pool.acquire()
        if self.path.endswith("/log-batch"):
            for m in body["metrics"]:
                fh.write(json.dumps({"run": body["run_id"], **m}) + "\n")
            if body.get("flush"):
                fh.flush()
                return self._answer({"flushed": True})
        self.pool.release(fh)
        self._answer({})

    def _answer(self, obj):
        data = json.dumps(obj).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--store", default="store.jsonl")
    p.add_argument("--pool-size", type=int, default=4)
    a = p.parse_args()
    Handler.pool = ConnectionPool(a.store, a.pool_size)
    ThreadingHTTPServer(("127.0.0.1", a.port), Handler).serve_forever()
