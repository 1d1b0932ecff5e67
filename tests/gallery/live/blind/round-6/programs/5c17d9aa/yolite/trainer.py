import time

import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from .dist_utils import is_distributed, is_main_process, main_process_phase


class ModelEma:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = {k: v.clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            if v.dtype.is_floating_point:
                self.shadow[k].lerp_(v, 1 - self.decay)


class BaseTrainer:
    def __init__(self, model, train_loader, val_loader, args):
        self.args = args
        self.model = DistributedDataParallel(model) if is_distributed() else model
        self.ema = ModelEma(model)
        self.train_loader, self.val_loader = train_loader, val_loader
        self.opt = torch.optim.SGD(self.model.parameters(), args.lr, momentum=0.9)
        self.best = 0.0

    def train_one_epoch(self, epoch):
        self.model.train()
        for x, y in self.train_loader:
            loss = F.cross_entropy(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.ema.update(getattr(self.model, "module", self.model))
            time.sleep(0.04)
        if is_main_process():
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)

    @torch.no_grad()
    def _run_validation(self, epoch):
        self.model.eval()
        ok = n = 0
        for x, y in self.val_loader:
            ok += (self.model(x).argmax(1) == y).sum().item()
            n += len(y)
        acc = ok / n
        self.best = max(acc, self.best)
        print(f"epoch {epoch} val acc {acc:.3f} best {self.best:.3f}", flush=True)

    def fit(self):
        for epoch in range(1, self.args.epochs + 1):
            self.train_one_epoch(epoch)
            if epoch % self.args.val_interval == 0:
                with main_process_phase("validation") as active:
                    if active:
                        self._run_validation(epoch)
