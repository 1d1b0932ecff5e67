import os
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from helpers import FeatureCache, Saver, make_pool

torch.set_num_threads(1)


class Predictor(nn.Module):
    def __init__(self, feats=20, dim=96):
        super().__init__()
        self.conv = nn.Conv1d(feats, dim, 4, 2, 1)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, 2 * feats)

    def forward(self, x):
        h = self.conv(x.transpose(1, 2)).transpose(1, 2)
        target = x[:, : 2 * h.size(1)].reshape(x.size(0), h.size(1), -1)
        return nn.functional.mse_loss(self.out(self.rnn(h)[0][:, :-2]), target[:, 2:])


def batches(block, step, rank, world, size):
    order = sorted(range(len(block)), key=lambda k: len(block[k]))
    groups = [order[k:k + size] for k in range(0, len(order), size)]
    for k in range(0, len(groups) - world + 1, world):
        pick = groups[k + (rank + k // world) % world]
        yield pad_sequence([torch.from_numpy(block[j]) for j in pick], batch_first=True)


@torch.no_grad()
def validate(acc, model, block, size):
    model.eval()
    total = torch.zeros(2)
    for x in batches(block, 0, acc.process_index, acc.num_processes, size):
        total += torch.tensor([float(acc.unwrap_model(model)(x)), 1.0])
    total = acc.reduce(total, "sum")
    model.train()
    return (total[0] / total[1]).item()


def main():
    pool = make_pool()
    acc = Accelerator(cpu=True, gradient_accumulation_steps=2)
    root = os.environ["RUN_DIR"]
    cache = FeatureCache(root, pool)
    saver = Saver(root) if acc.is_main_process else None
    torch.manual_seed(0)
    model = Predictor()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, opt = acc.prepare(model, opt)
    held_out = cache.block(9999, n=400)
    step, t0 = 0, time.time()
    for i in range(100_000):
        block = cache.block(i % 60)
        for x in batches(block, step, acc.process_index, acc.num_processes, 5):
            with acc.accumulate(model):
                loss = model(x)
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
            step += 1
        if i % 5 == 4:
            val = validate(acc, model, held_out, 8)
            acc.print(f"block {i} step {step} train {loss.item():.4f} val {val:.4f} {step / (time.time() - t0):.1f} it/s", flush=True)
        if i % 10 == 9:
            if saver is not None:
                saver.submit(step, acc.unwrap_model(model).state_dict())
            acc.wait_for_everyone()


if __name__ == "__main__":
    main()
