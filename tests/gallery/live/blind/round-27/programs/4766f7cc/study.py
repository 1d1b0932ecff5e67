import json
import os
import random
import sqlite3
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Study:
    def __init__(self, path):
        self.path = path
        with self._connect() as conn:
            conn.execute("CREATE TABLE IF NOT EXISTS reports (trial INTEGER, step INTEGER, value REAL)")

    def _connect(self):
        conn = sqlite3.connect(self.path, timeout=30)
        conn.execute("PRAGMA journal_mode=WAL")
        return conn

    def suggest(self, trial):
        rng = random.Random(1000 + trial)
        return {
            "trial": trial,
            "lr": 10 ** rng.uniform(-3.5, -1.5),
            "width": rng.choice([16, 32, 64]),
            "depth": rng.choice([1, 2, 3]),
            "dropout": rng.uniform(0.0, 0.3),
        }

    def report(self, trial, step, value):
        conn = self._connect()
        with conn:
            conn.execute("INSERT INTO reports VALUES (?, ?, ?)", (trial, step, value))
        conn.close()

    def should_prune(self, trial, step, value):
        conn = self._connect()
        rows = conn.execute(
            "SELECT value FROM reports WHERE step = ? AND trial != ? ORDER BY value", (step, trial)
        ).fetchall()
        conn.close()
        if len(rows) < 3:
            return False
        return value > rows[len(rows) // 2][0]


def serve_dashboard(path, ready):
    os.environ.pop("MASTER_PORT", None)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            conn = sqlite3.connect(path, timeout=30)
            rows = conn.execute("SELECT trial, MIN(value) FROM reports GROUP BY trial").fetchall()
            conn.close()
            body = json.dumps(rows).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ready.put(server.server_address[1])
    server.serve_forever()
