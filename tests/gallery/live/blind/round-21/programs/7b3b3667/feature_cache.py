import contextlib
import io
import sqlite3

import torch


class FeatureCache:
    """Teacher features on local disk, shared by all ranks of the node."""

    def __init__(self, path, capacity):
        self.capacity = capacity
        self.db = sqlite3.connect(path, timeout=7200, isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=NORMAL")
        self.db.execute("CREATE TABLE IF NOT EXISTS features "
                        "(key INTEGER PRIMARY KEY, blob BLOB, hits INTEGER DEFAULT 0, slot INTEGER)")
        self.hits = {}

    @contextlib.contextmanager
    def transaction(self):
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield self.db
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def get(self, key):
        row = self.db.execute("SELECT blob FROM features WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        self.hits[key] = self.hits.get(key, 0) + 1
        return torch.load(io.BytesIO(row[0]))

    def put_many(self, items):
        rows = []
        for key, tensor in items:
            buf = io.BytesIO()
            torch.save(tensor, buf)
            rows.append((key, buf.getvalue()))
        with self.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO features (key, blob) VALUES (?, ?)", rows)

    def flush_hits(self):
        rows = [(n, key) for key, n in sorted(self.hits.items())]
        with self.transaction() as db:
            db.executemany("UPDATE features SET hits = hits + ? WHERE key = ?", rows)
        self.hits.clear()

    def evict(self):
        self.db.execute("DELETE FROM features WHERE key NOT IN "
                        "(SELECT key FROM features ORDER BY hits DESC, key LIMIT ?)", (self.capacity,))

    def renumber(self):
        keys = [k for (k,) in self.db.execute("SELECT key FROM features ORDER BY key").fetchall()]
        self.db.executemany("UPDATE features SET slot = ? WHERE key = ?", list(enumerate(keys)))
        return len(keys)
