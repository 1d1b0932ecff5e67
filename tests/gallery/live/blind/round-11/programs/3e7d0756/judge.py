"""Judge service: jobs are queued by POST /submit and fetched with GET /result/<id>."""
import itertools
import json
import os
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

jobs, results = queue.Queue(), {}
counter = itertools.count()


def work():
    while True:
        ident, samples = jobs.get()
        time.sleep(0.0008 * len(samples))
        results[ident] = [sum(s) % 17 / 17 + len(set(s)) / len(s) for s in samples]


class Judge(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 14

    def _reply(self, payload):
        body = json.dumps(payload).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ident = next(counter)
        jobs.put((ident, request["samples"]))
        self._reply({"id": ident})

    def do_GET(self):
        ident = int(self.path.rsplit("/", 1)[1])
        self._reply({"rewards": results.pop(ident, None)})

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["JUDGE_PORT"])), Judge)
    server.daemon_threads = True
    server.serve_forever()
