import logging
import random

import torch

log = logging.getLogger("data")


def load_manifest(size, seed=17):
    rng = random.Random(seed)
    entries = []
    for i in range(size):
        frames = int(min(1600, max(40, rng.lognormvariate(4.8, 0.55))))
        entries.append({"key": "BAC009S%04dW%04d" % (i // 40, i % 400), "frames": frames})
    return sorted(entries, key=lambda e: e["frames"])


class ShardReader:
    """Every worker reads its own contiguous part of the manifest."""

    def __init__(self, manifest, rank, world, batch, max_frames, mels, vocab):
        per = len(manifest) // world
        self.items = manifest[rank * per:(rank + 1) * per]
        self.batch, self.max_frames = batch, max_frames
        self.mels, self.vocab = mels, vocab
        self.rng = random.Random(100 + rank)

    def _load(self, entry):
        n = entry["frames"]
        feats = torch.randn(n, self.mels)
        if n > self.max_frames:
            start = self.rng.randint(0, n - self.max_frames)
            log.warning("utterance %s has %d frames, longer than %d; using the segment %d-%d",
                        entry["key"], n, self.max_frames, start, start + self.max_frames)
            feats = feats[start:start + self.max_frames]
        out = torch.zeros(self.max_frames, self.mels)
        out[:feats.size(0)] = feats
        return out

    def __iter__(self):
        while True:
            picked = self.rng.sample(self.items, self.batch)
            feats = torch.stack([self._load(e) for e in picked])
            labels = torch.randint(0, self.vocab, (self.batch, self.max_frames // 4))
            yield feats, labels
