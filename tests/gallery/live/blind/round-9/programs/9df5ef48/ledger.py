import queue
import sqlite3
import threading

SCHEMA = """
CREATE TABLE IF NOT EXISTS seen (
    epoch INTEGER, sample TEXT, rank INTEGER, loss REAL,
    PRIMARY KEY (epoch, sample)
);
CREATE TABLE IF NOT EXISTS scalars (step INTEGER, rank INTEGER, name TEXT, value REAL);
"""


def prepare(path):
    with sqlite3.connect(path) as con:
        con.execute("PRAGMA journal_mode=WAL")
        con.executescript(SCHEMA)


class Ledger:
    """Which sample was used when, and with which loss; shared by all ranks."""

    def __init__(self, path, rank, backlog=256):
        self.path = path
        self.rank = rank
        self.queue = queue.Queue(maxsize=backlog)
        self.thread = threading.Thread(target=self._write, name="ledger", daemon=True)
        self.thread.start()

    def samples(self, epoch, names, losses):
        self.queue.put(("INSERT INTO seen VALUES (?, ?, ?, ?)", [(epoch, n, self.rank, l) for n, l in zip(names, losses)]))

    def scalar(self, step, name, value):
        self.queue.put(("INSERT INTO scalars VALUES (?, ?, ?, ?)", [(step, self.rank, name, value)]))

    def _write(self):
        con = sqlite3.connect(self.path, timeout=120)
        con.execute("PRAGMA synchronous=NORMAL")
        while True:
            item = self.queue.get()
            if item is None:
                break
            sql, rows = item
            with con:
                con.executemany(sql, rows)
        con.close()

    def close(self):
        self.queue.put(None)
        self.thread.join()
