import logging
import struct

import torch
from torch.utils.data import Dataset

log = logging.getLogger("ocr.lines")


class TextLines(Dataset):
    def __init__(self, n=24000):
        self.n = n

    def __len__(self):
        return self.n

    def _decode(self, i):
        if i % 97 == 13:
            raise struct.error(f"truncated image line_{i:06d}.png")
        g = torch.Generator().manual_seed(i)
        y = torch.randint(1, 30, (10,), generator=g)
        img = torch.zeros(32, 160)
        for k, c in enumerate(y.tolist()):
            img[c, 16 * k:16 * k + 16] = 1.0
        return img + 0.2 * torch.randn(32, 160, generator=g), y

    def __getitem__(self, i):
        for _ in range(5):
            try:
                return self._decode(i)
            except struct.error:
                log.exception("failed to decode sample %d, taking the next one", i)
                i = (i + 1) % self.n
        raise RuntimeError("too many corrupt samples in a row")
