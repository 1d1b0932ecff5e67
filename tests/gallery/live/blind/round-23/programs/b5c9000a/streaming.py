import re

import torch
from torch.utils.data import IterableDataset

from bucket import PageArchive

TAG = re.compile(r"<[^>]+>")


def clean(page):
    return re.sub(r"\s+", " ", TAG.sub(" ", page)).strip()


def encode(text, block):
    ids = [b % 256 for b in text.encode()][:block]
    ids += [0] * (block - len(ids))
    return torch.tensor(ids)


class CurriculumStream(IterableDataset):
    """Starts with the curated split and moves on to the crawl."""

    def __init__(self, block=64, curated_docs=500):
        self.block = block
        self.curated_docs = curated_docs

    def _documents(self):
        curated = PageArchive("curated")
        for _, key in zip(range(self.curated_docs), curated.keys()):
            yield curated.get(key)
        crawl = PageArchive("crawl", median_latency=0.3)
        for key in crawl.keys():
            yield crawl.get(key)

    def __iter__(self):
        for page in self._documents():
            ids = encode(clean(page), self.block)
            yield {"input_ids": ids, "labels": ids.clone()}
