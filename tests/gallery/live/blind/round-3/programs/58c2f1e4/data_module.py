import os
import time

import torch

from dist_utils import is_main_process, wait_for_everyone
from locks import file_lock


class SFTDataModule:
    def __init__(self, cache_dir, seq_len=32):
        self.cache_dir, self.seq_len = cache_dir, seq_len
        self.path = os.path.join(cache_dir, f"packed_{seq_len}.pt")

    def _tokenize(self):
        out = []
        for i in range(400):
            text = f"### Instruction: sort item {i}\n### Response: {i * 7 % 31}"
            ids = [ord(c) % 128 for c in text][: self.seq_len]
            out.append(ids + [0] * (self.seq_len - len(ids)))
            time.sleep(0.002)
        return torch.tensor(out)

    def prepare(self):
        if not is_main_process():
            time.sleep(0.5)
        with file_lock(self.path + ".lock"):
            if not os.path.exists(self.path):
                torch.save(self._tokenize(), self.path)
                self._report()
            self.data = torch.load(self.path)

    def _report(self):
        size = os.path.getsize(self.path)
        print(f"wrote {self.path} ({size} bytes)", flush=True)
        wait_for_everyone()
