import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch


class SnapshotStore:
    """Keeps the most recent training snapshots on disk, written in the background."""

    def __init__(self, keep_last=3, io_threads=1):
        self.root = Path(tempfile.mkdtemp(prefix="snapshots_"))
        self.keep_last = keep_last
        self.written = []
        self._io = ThreadPoolExecutor(max_workers=io_threads, thread_name_prefix="snapshot-io")
        self._inflight = None

    def save(self, step, payload):
        self.wait()
        cpu = {k: v.detach().clone() for k, v in payload.items()}
        self._inflight = self._io.submit(self._write, step, cpu)

    def wait(self):
        if self._inflight is not None:
            path = self._inflight.result()
            print(f"snapshot {path.name} committed", flush=True)
            self._inflight = None

    def _write(self, step, payload):
        final = self.root / f"step_{step:06d}.pt"
        partial = final.with_suffix(".partial")
        torch.save({"step": step, "model": payload}, partial)
        os.replace(partial, final)
        self.written.append(final)
        self._rotate()
        return final

    def _rotate(self):
        stale = self.written[: -self.keep_last]
        removals = [self._io.submit(self._remove, p) for p in stale]
        for r in removals:
            self.written.remove(r.result())

    @staticmethod
    def _remove(path):
        path.unlink(missing_ok=True)
        return path
