import sqlite3
import threading
import queue


class Journal(threading.Thread):
    """Single writer thread in front of the run database."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.box = queue.Queue(maxsize=64)
        self.start()

    def add(self, kind, step, value):
        self.box.put((kind, step, value))

    def run(self):
        db = sqlite3.connect(self.path, timeout=60)
        db.execute("CREATE TABLE IF NOT EXISTS log (kind TEXT, step INTEGER, value REAL)")
        while True:
            item = self.box.get()
            with db:
                db.execute("INSERT INTO log VALUES (?, ?, ?)", item)
