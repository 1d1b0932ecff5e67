import sys

import torch

from .rdb import RemotePdb


class NanChecker:
    def __init__(self, module, break_on_nan=True):
        self.module, self.break_on_nan = module, break_on_nan

    def check(self, name, value):
        if torch.isfinite(value).all():
            return
        bad = [n for n, p in self.module.named_parameters() if not torch.isfinite(p).all()]
        print(f"non-finite {name}: {value} (parameters affected: {bad or 'none'})")
        if self.break_on_nan:
            RemotePdb().set_trace(sys._getframe().f_back)
