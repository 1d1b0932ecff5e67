import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from sampler import DynamicBatches
from saver import BackgroundSaver


class Encoder(nn.Module):
    def __init__(self, dim=96, vocab=41):
        super().__init__()
        self.sub = nn.Conv1d(40, dim, 5, stride=4, padding=2)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.out(self.enc(F.relu(self.sub(x.transpose(1, 2))).transpose(1, 2))).log_softmax(-1)


def ctc(logp, y):
    n, t = logp.shape[:2]
    return F.ctc_loss(logp.transpose(0, 1), y, torch.full((n,), t), torch.full((n,), y.shape[1]), zero_infinity=True)


@torch.no_grad()
def validate(model, rank, world, n=60):
    model.eval()
    tot = torch.zeros(2)
    for k, (x, y) in zip(range(n), DynamicBatches(0, seed=99)):
        if k % world == rank:
            tot += torch.tensor([ctc(model(x), y).item(), 1.0])
    dist.all_reduce(tot)
    model.train()
    return (tot[0] / tot[1]).item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    model = DDP(Encoder())
    opt = torch.optim.AdamW(model.parameters(), lr=4e-4)
    saver = BackgroundSaver(os.environ["EXP_DIR"]) if rank == 0 else None
    t0, accum = time.time(), 4
    step = 0
    batches = iter(DynamicBatches(rank))
    while step < 200000:
        for k in range(accum):
            x, y = next(batches)
            if k < accum - 1:
                with model.no_sync():
                    loss = ctc(model(x), y) / accum
                    loss.backward()
            else:
                loss = ctc(model(x), y) / accum
                loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        opt.zero_grad()
        step += 1
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item() * accum:.3f} {(time.time() - t0) / 20:.2f} s/step", flush=True)
            t0 = time.time()
        if step % 100 == 0:
            v = validate(model.module, rank, world)
            if rank == 0:
                print(f"step {step} valid {v:.4f}", flush=True)
                saver.submit(step, {"model": model.module.state_dict(), "step": step})
            dist.barrier()
            t0 = time.time()


if __name__ == "__main__":
    main()
