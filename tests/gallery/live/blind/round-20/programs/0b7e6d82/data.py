import queue
import threading

import torch


class TokenStream:
    """Packs token windows ahead of time in a thread."""

    def __init__(self, rank, vocab, batch, length, ahead=8):
        self.gen = torch.Generator().manual_seed(40 + rank)
        self.vocab, self.batch, self.length = vocab, batch, length
        self.ready = queue.Queue(maxsize=ahead)
        threading.Thread(target=self._pack, name="packer", daemon=True).start()

    def _pack(self):
        while True:
            start = torch.randint(0, self.vocab, (self.batch, 1), generator=self.gen)
            walk = torch.randint(1, 6, (self.batch, self.length), generator=self.gen).cumsum(dim=1)
            self.ready.put((start + walk) % self.vocab)

    def __next__(self):
        t = self.ready.get()
        return t[:, :-1], t[:, 1:]

    def __iter__(self):
        return self
