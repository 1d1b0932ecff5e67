"""Small embedding service: a line of ids in, float32 rows out, one connection a request."""
import argparse
import os
import socketserver
import struct
import threading
import time

DIM = 16


class Table:
    def __init__(self, segment_rows):
        self.segment_rows = segment_rows
        self.lock = threading.Lock()
        self.served = 0

    def rows(self, ids):
        with self.lock:
            self.served += len(ids)
            if self.served > self.segment_rows:
                self.merge_segments()
            return b"".join(struct.pack("<%df" % DIM, *[((i * 31 + d * 7) % 97) / 97 for d in range(DIM)])
                            for i in ids)

    def merge_segments(self):
        for _ in range(self.served):
            time.sleep(1.0)
        self.served = 0


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        ids = [int(t) for t in self.rfile.readline().split()]
        try:
            self.wfile.write(self.server.table.rows(ids))
        except OSError:
            pass


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, required=True)
    ap.add_argument("--segment-rows", type=int, default=100000)
    args = ap.parse_args()
    parent = os.getppid()
    server = Server(("127.0.0.1", args.port), Handler)
    server.table = Table(args.segment_rows)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while os.getppid() == parent:
        time.sleep(1.0)


if __name__ == "__main__":
    main()
