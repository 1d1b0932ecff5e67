import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def if_main_process():
    return dist.get_rank() == 0


def run_on_main(func, args=(), kwargs=None):
    """Runs func on the main process, the others wait for it."""
    if if_main_process():
        func(*args, **(kwargs or {}))
    dist.barrier()


class Checkpointer:
    def __init__(self, directory, keep=2):
        self.directory, self.keep = directory, keep
        os.makedirs(directory, exist_ok=True)

    def save(self, state, name):
        path = os.path.join(self.directory, f"CKPT+{name}.pt")
        torch.save(state, path)
        old = sorted(p for p in os.listdir(self.directory) if p.startswith("CKPT+"))[:-self.keep]
        for p in old:
            os.remove(os.path.join(self.directory, p))
        print(f"Saved checkpoint {path}", flush=True)


class CTCModel(nn.Module):
    def __init__(self, n_mels=40, hidden=128, vocab=31):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(n_mels, hidden, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv1d(hidden, hidden, 5, stride=2, padding=2), nn.ReLU(),
        )
        self.rnn = nn.GRU(hidden, hidden, num_layers=1, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, vocab)

    def forward(self, feats):
        h = self.front(feats.transpose(1, 2)).transpose(1, 2)
        return self.out(self.rnn(h)[0]).log_softmax(-1)


class Brain:
    def __init__(self, run_opts):
        self.opts = run_opts
        self.modules = DDP(CTCModel())
        self.optimizer = torch.optim.AdamW(self.modules.parameters(), lr=5e-4)
        self.checkpointer = Checkpointer(run_opts.exp_dir)
        self.step = 0

    def compute_loss(self, feats, targets):
        logp = self.modules(feats)
        n, t = logp.shape[:2]
        return nn.functional.ctc_loss(
            logp.transpose(0, 1), targets,
            torch.full((n,), t, dtype=torch.long), torch.full((n,), targets.shape[1], dtype=torch.long),
            zero_infinity=True,
        )

    def fit_batch(self, batch):
        loss = self.compute_loss(*batch)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.modules.parameters(), 5.0)
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def _save_intra_epoch_ckpt(self):
        state = {"model": self.modules.module.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}
        run_on_main(self.checkpointer.save, (state, f"{self.step:08d}"))

    def _fit_train(self, batches, epoch):
        last_ckpt_time = time.time()
        avg = 0.0
        for i in range(self.opts.iters_per_epoch):
            loss = self.fit_batch(next(batches))
            avg += (loss - avg) / (i + 1)
            if if_main_process() and self.step % 25 == 0:
                print(f"epoch {epoch} step {self.step} train_loss={avg:.3f}", flush=True)
            if (
                self.opts.ckpt_interval_minutes > 0
                and time.time() - last_ckpt_time >= self.opts.ckpt_interval_minutes * 60.0
            ):
                self._save_intra_epoch_ckpt()
                last_ckpt_time = time.time()

    def fit(self, make_batches):
        for epoch in range(1, self.opts.epochs + 1):
            self._fit_train(make_batches(epoch), epoch)
            self._save_intra_epoch_ckpt()
