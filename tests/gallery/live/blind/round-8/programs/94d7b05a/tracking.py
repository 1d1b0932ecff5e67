import json
import sqlite3
import time


def connect(path):
    db = sqlite3.connect(path, timeout=3600)
    db.execute("CREATE TABLE IF NOT EXISTS metrics (ts REAL, step INTEGER, name TEXT, value REAL)")
    db.execute("CREATE TABLE IF NOT EXISTS predictions (ts REAL, step INTEGER, payload TEXT)")
    db.commit()
    return db


class MetricWriter:
    def __init__(self, path):
        self.db = connect(path)

    def log(self, step, **values):
        now = time.time()
        for name, value in values.items():
            self.db.execute("INSERT INTO metrics VALUES (?, ?, ?, ?)", (now, step, name, value))
        self.db.commit()


class PredictionWriter:
    """Keeps a table of model outputs, written in larger pieces."""

    def __init__(self, path, chunk=512):
        self.db = connect(path)
        self.chunk = chunk
        self.rows = 0

    def add(self, step, items):
        now = time.time()
        self.db.executemany(
            "INSERT INTO predictions VALUES (?, ?, ?)",
            [(now, step, json.dumps(it)) for it in items])
        self.rows += len(items)
        if self.rows >= self.chunk:
            self.db.commit()
            self.rows = 0
