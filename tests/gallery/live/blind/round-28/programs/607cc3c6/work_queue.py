"""Shared queue of structure shards in SQLite; every rank claims from its own length bucket."""
import sqlite3
import time

SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    id INTEGER PRIMARY KEY,
    bucket INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    length INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    owner INTEGER,
    updated REAL
);
CREATE INDEX IF NOT EXISTS by_state ON items (state, bucket, id);
"""


class WorkQueue:
    def __init__(self, path, owner, busy_timeout=3600.0):
        self.owner = owner
        self.conn = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None)
        self.conn.execute("PRAGMA synchronous=OFF")

    def create(self, rows):
        self.conn.executescript(SCHEMA)
        self.conn.execute("BEGIN")
        self.conn.executemany("INSERT INTO items (bucket, seed, length) VALUES (?, ?, ?)", rows)
        self.conn.execute("COMMIT")

    def claim_next(self, bucket):
        self.conn.execute("BEGIN IMMEDIATE")
        row = self.conn.execute(
            "SELECT id, seed, length FROM items WHERE state = 'pending' AND bucket = ? ORDER BY id LIMIT 1",
            (bucket,),
        ).fetchone()
        if row is None:
            return None
        self.conn.execute(
            "UPDATE items SET state = 'running', owner = ?, updated = ? WHERE id = ?",
            (self.owner, time.time(), row[0]),
        )
        self.conn.execute("COMMIT")
        return row

    def mark_done(self, item_id):
        self.conn.execute("UPDATE items SET state = 'done', updated = ? WHERE id = ?", (time.time(), item_id))

    def counts(self):
        return dict(self.conn.execute("SELECT state, count(*) FROM items GROUP BY state").fetchall())
