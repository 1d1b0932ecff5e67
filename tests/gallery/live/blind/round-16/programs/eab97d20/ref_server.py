"""Keeps rollouts until the trainers fetch them; adds reference log-probs."""
import argparse
import io
import queue
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

import torch

from policy import TinyLM, token_logps

MAX_PENDING = 6
pending = {}
ref_model = None


def slot(rank):
    return pending.setdefault(rank, queue.Queue())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _reply(self, body, code=200):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urlparse(self.path)
        rank = int(parse_qs(url.query).get("rank", ["0"])[0])
        if url.path == "/health":
            return self._reply(b"ok")
        if url.path == "/pending":
            return self._reply(str(slot(rank).qsize()).encode())
        try:
            self._reply(slot(rank).get_nowait())
        except queue.Empty:
            self._reply(b"empty")

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if slot(0).qsize() >= MAX_PENDING:
            return self._reply(b"full", 429)
        for rank, batch in enumerate(torch.load(io.BytesIO(raw))):
            with torch.no_grad():
                batch["ref_logps"] = token_logps(ref_model, batch["tokens"])
            buf = io.BytesIO()
            torch.save(batch, buf)
            slot(rank).put(buf.getvalue())
        self._reply(b"stored")

    def log_message(self, *a):
        pass


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ref_model = TinyLM().eval()
    print("ref server on port", args.port, flush=True)
    ThreadingHTTPServer(("127.0.0.1", args.port), Handler).serve_forever()
