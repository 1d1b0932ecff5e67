import multiprocessing
import os

import numpy as np

from locking import FileLock

VOCAB = 512


def _read_windows(path, seq_len, batch_size, seed, conn):
    data = np.memmap(path, dtype=np.int32, mode="r").reshape(-1, seq_len)
    rng = np.random.default_rng(seed)
    while True:
        rows = rng.integers(0, len(data), batch_size)
        conn.send(np.ascontiguousarray(data[np.sort(rows)]))


class PackedCorpus:
    """Token windows of one curriculum stage, packed once per machine and shared through the page cache."""

    def __init__(self, cache_dir, seq_len, batch_size, rank, read_ahead=False):
        self.path = os.path.join(cache_dir, f"packed-{seq_len}.bin")
        self.seq_len = seq_len
        self.batch_size = batch_size
        self.rank = rank
        self.read_ahead = read_ahead
        self.rng = np.random.default_rng(1000 + rank)
        self.reader = None
        self.conn = None

    def open(self):
        with FileLock(self.path + ".lock"):
            if not os.path.exists(self.path):
                self._pack()
            self.data = np.memmap(self.path, dtype=np.int32, mode="r").reshape(-1, self.seq_len)
            if self.read_ahead:
                self._start_reader()
        return self

    def _pack(self):
        rng = np.random.default_rng(7)
        docs = rng.zipf(1.3, size=(4000, self.seq_len)) % VOCAB
        tmp = self.path + ".tmp"
        docs.astype(np.int32).tofile(tmp)
        os.replace(tmp, self.path)
        print(f"[rank {self.rank}] packed {docs.size} tokens into {self.path}")

    def _start_reader(self):
        ctx = multiprocessing.get_context("fork")
        self.conn, remote = ctx.Pipe(duplex=False)
        self.reader = ctx.Process(
            target=_read_windows,
            args=(self.path, self.seq_len, self.batch_size, self.rank, remote),
            daemon=True,
        )
        self.reader.start()
        remote.close()

    def next_batch(self):
        if self.conn is not None:
            return self.conn.recv()
        return np.array(self.data[self.rng.integers(0, len(self.data), self.batch_size)])

    def close(self):
        if self.reader is not None:
            self.reader.terminate()
            self.reader.join()
