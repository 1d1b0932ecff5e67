"""Serves user features by partition: recent ones from memory, the rest from archives."""
import argparse
import gzip
import json
import os
import random
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

DIM = 24
ROWS = {"p0": 4000, "p1": 4000, "p2": 700000}
RESIDENT = {}


def row(rng):
    return [round(rng.uniform(-1, 1), 3) for _ in range(DIM)]


def prepare(folder):
    os.makedirs(folder, exist_ok=True)
    for name, count in ROWS.items():
        rng = random.Random(name)
        if count <= 10000:
            RESIDENT[name] = [row(rng) for _ in range(count)]
            continue
        base = [json.dumps(row(rng)) for _ in range(4000)]
        with gzip.open(f"{folder}/{name}.jsonl.gz", "wt", compresslevel=1) as f:
            for i in range(count):
                f.write(base[i % len(base)] + "\n")


def lookup(folder, name, ids):
    if name in RESIDENT:
        table = RESIDENT[name]
        return [table[i % len(table)] for i in ids]
    wanted = {i % ROWS[name] for i in ids}
    found = {}
    with gzip.open(f"{folder}/{name}.jsonl.gz", "rt") as f:
        for n, line in enumerate(f):
            if n in wanted:
                found[n] = json.loads(line)
    return [found[i % ROWS[name]] for i in ids]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        q = parse_qs(urlparse(self.path).query)
        ids = [int(i) for i in q["ids"][0].split(",")]
        body = json.dumps(lookup(self.server.folder, q["part"][0], ids)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, required=True)
    ap.add_argument("--folder", default="archive")
    args = ap.parse_args()
    prepare(args.folder)
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    server.folder = args.folder
    print(f"feature service on {args.port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
