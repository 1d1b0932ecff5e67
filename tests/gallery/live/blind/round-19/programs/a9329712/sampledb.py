import sqlite3

SCHEMA = """
CREATE TABLE IF NOT EXISTS losses (
    sample INTEGER, step INTEGER, rank INTEGER, loss REAL, grad REAL, probs TEXT,
    PRIMARY KEY (sample)
);
CREATE TABLE IF NOT EXISTS progress (rank INTEGER PRIMARY KEY, step INTEGER);
"""


def connect(path):
    conn = sqlite3.connect(path, timeout=120.0, isolation_level=None)
    conn.execute("PRAGMA synchronous=OFF")
    return conn


def create(path, samples):
    conn = connect(path)
    conn.executescript(SCHEMA)
    conn.execute("BEGIN")
    conn.executemany(
        "INSERT INTO losses VALUES (?, -1, -1, 0.0, 0.0, ?)",
        ((i, "0.1 " * 40) for i in range(samples)),
    )
    conn.execute("COMMIT")
    conn.close()


class SampleWriter:
    def __init__(self, path, rank):
        self.conn, self.rank = connect(path), rank

    def write(self, step, samples, losses, probs):
        rows = [
            (int(s), step, self.rank, float(l), 0.0, " ".join(f"{v:.3f}" for v in p))
            for s, l, p in zip(samples, losses, probs.tolist())
        ]
        self.conn.execute("BEGIN IMMEDIATE")
        self.conn.executemany("INSERT OR REPLACE INTO losses VALUES (?, ?, ?, ?, ?, ?)", rows)
        self.conn.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (self.rank, step))
        self.conn.execute("COMMIT")
