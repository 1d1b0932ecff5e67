"""Packs documents into batches under a token budget, in a reader thread ahead of the training loop."""
import queue
import threading
import time

import torch


class DocumentSource:
    """Every rank reads all languages in turn; the ranks are offset so that they never read the same one."""

    LANGUAGES = {"en": (20, 60), "de": (30, 90), "zh": (80, 240)}

    def __init__(self, rank, docs_per_turn=8):
        self.rank, self.docs_per_turn = rank, docs_per_turn
        self.g = torch.Generator().manual_seed(500 + rank)

    def __iter__(self):
        names = list(self.LANGUAGES)
        turn = self.rank
        while True:
            lo, hi = self.LANGUAGES[names[turn % len(names)]]
            time.sleep(0.1)
            for _ in range(self.docs_per_turn):
                n = int(torch.randint(lo, hi, (1,), generator=self.g))
                yield torch.randint(0, 64, (n,), generator=self.g)
            turn += 1


class PackedBatches:
    def __init__(self, source, docs_per_batch=4, depth=6):
        self.source, self.docs_per_batch = source, docs_per_batch
        self.queue = queue.Queue(depth)
        self.reader = threading.Thread(target=self._fill, name="packing-reader", daemon=True)
        self.reader.start()

    def _fill(self):
        docs = []
        for doc in self.source:
            docs.append(doc)
            if len(docs) == self.docs_per_batch:
                self.queue.put(torch.cat(docs))
                docs = []

    def __iter__(self):
        while True:
            yield self.queue.get()
