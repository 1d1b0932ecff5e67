"""Patch index and dataset for the 3D ink segmentation runs."""
import random
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset


@dataclass
class PatchConfig:
    patch_size: int = 20
    min_labeled_ratio: float = 0.02
    seed: int = 17
    n_patches: int = 960


@dataclass
class Patch:
    index: int
    segment: int
    offset: tuple


class Segment:
    """One unrolled segment: a volume window and a sparse label map."""

    def __init__(self, segment_id, labeled):
        self.segment_id = segment_id
        rng = np.random.default_rng(1000 + segment_id)
        self.volume = rng.standard_normal((40, 40, 40)).astype(np.float32)
        if labeled:
            field = rng.random((40, 40, 40))
            self.labels = (field > 0.85).astype(np.float32)
        else:
            self.labels = np.zeros((40, 40, 40), dtype=np.float32)


def build_patch_index(config):
    rng = random.Random(config.seed)
    unlabeled = {3, 9, 14, 20}
    segments = [Segment(i, labeled=i not in unlabeled) for i in range(24)]
    per_segment = config.n_patches // len(segments)
    patches = []
    for seg in segments:
        for _ in range(per_segment):
            offset = tuple(rng.randrange(0, 40 - config.patch_size) for _ in range(3))
            patches.append(Patch(len(patches), seg.segment_id, offset))
    return segments, patches


class InkDataset(Dataset):
    def __init__(self, config):
        self.config = config
        self.segments, self.patches = build_patch_index(config)

    def __len__(self):
        return len(self.patches)

    def _native_sample(self, patch):
        seg = self.segments[patch.segment]
        z, y, x = patch.offset
        p = self.config.patch_size
        window = (slice(z, z + p), slice(y, y + p), slice(x, x + p))
        labels = seg.labels[window]
        if labels.mean() < self.config.min_labeled_ratio:
            return None
        image = seg.volume[window]
        image = (image - image.mean()) / (image.std() + 1e-6)
        return {"image": torch.from_numpy(image.copy())[None],
                "labels": torch.from_numpy(labels.copy())[None]}

    def __getitem__(self, requested_index):
        current_index = requested_index
        while True:
            sample = self._native_sample(self.patches[current_index])
            if sample is not None:
                return sample
            if len(self.patches) <= 1:
                raise RuntimeError("no admissible patch in the data set")
            rng = random.Random(self.config.seed + current_index * 7919)
            replacement = current_index
            while replacement == current_index:
                replacement = rng.randrange(len(self.patches))
            current_index = replacement
