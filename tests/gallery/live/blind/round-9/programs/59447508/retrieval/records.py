import json
import multiprocessing as mp
import os
import time


def _drain(queue, path):
    with open(path, "a") as f:
        for rec in iter(queue.get, None):
            f.write(json.dumps(rec) + "\n")
            f.flush()


class RecordWriter:
    def __init__(self, out_dir, rank):
        ctx = mp.get_context("fork")
        self.queue = ctx.Queue()
        path = os.path.join(out_dir, f"records.rank{rank}.jsonl")
        self.proc = ctx.Process(target=_drain, args=(self.queue, path), name="record-writer", daemon=True)
        self.proc.start()

    def add(self, **rec):
        rec["t"] = round(time.time(), 3)
        self.queue.put(rec)

    def close(self):
        self.queue.put(None)
        self.proc.join()
