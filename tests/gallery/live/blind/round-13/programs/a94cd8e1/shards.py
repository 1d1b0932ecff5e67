import queue
import threading

import torch


class ShardLoader:
    """Reads token shards one ahead on a background thread; the same order in a tensor-parallel group."""

    def __init__(self, dp_rank, dp_size, batch, length=49, shard=4096, vocab=128):
        self.dp_rank, self.dp_size, self.batch = dp_rank, dp_size, batch
        self.length, self.shard, self.vocab = length, shard, vocab
        self.ready = queue.Queue(maxsize=1)
        threading.Thread(target=self._fill, daemon=True, name="shards").start()

    def _read(self, i):
        g = torch.Generator().manual_seed(i)
        start = torch.randint(0, self.vocab, (self.shard, 1), generator=g)
        step = torch.randint(1, 4, (self.shard, 1), generator=g)
        return (start + step * torch.arange(self.length)) % self.vocab

    def _fill(self):
        i = self.dp_rank
        while True:
            self.ready.put(self._read(i))
            i += self.dp_size

    def __iter__(self):
        while True:
            data = self.ready.get()
            for chunk in data.split(self.batch):
                yield chunk[:, :-1], chunk[:, 1:]
