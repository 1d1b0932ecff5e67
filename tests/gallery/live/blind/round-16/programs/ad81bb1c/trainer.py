import logging
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from datamodule import DIM, BucketSampler, Prefetcher

NUM_EPOCHS, VALID_INTERVAL, SAVE_INTERVAL = 400, 120, 200


class VoiceLM(nn.Module):
    def __init__(self, dim=128, layers=3):
        super().__init__()
        self.inp = nn.Linear(DIM, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, batch_first=True, dropout=0.0)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(dim, DIM)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1) - 1)
        y = self.out(self.enc(self.inp(x[:, :-1]), mask=mask, is_causal=True))
        return (y - x[:, 1:]).abs().mean()


class MetricsTracker(dict):
    def add(self, **kw):
        for k, v in kw.items():
            self[k] = self.get(k, 0.0) + v

    def reduce(self):
        keys = sorted(self)
        t = torch.tensor([float(self[k]) for k in keys])
        dist.all_reduce(t)
        for k, v in zip(keys, t.tolist()):
            self[k] = v


@torch.no_grad()
def compute_validation_loss(model, rank, world):
    model.eval()
    tot = MetricsTracker(loss=0.0, batches=0)
    for feats in Prefetcher(BucketSampler(rank, world, 260, seed=77).epoch(0)):
        tot.add(loss=model.module(feats).item(), batches=1)
    tot.reduce()
    model.train()
    return tot["loss"] / max(1, tot["batches"])


def any_rank_done(done):
    flag = torch.tensor([1 if done else 0])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s (%(process)d) %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(42)
    model = DDP(VoiceLM())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step, t0 = 0, time.time()
    for epoch in range(NUM_EPOCHS):
        it = iter(Prefetcher(BucketSampler(rank, world).epoch(epoch)))
        while True:
            feats = next(it, None)
            if any_rank_done(feats is None):
                for _ in it:
                    pass
                break
            loss = model(feats)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            step += 1
            if step % 20 == 0 and rank == 0:
                logging.info("epoch %d step %d loss %.4f shape %s %.3f s/step", epoch, step, loss.item(),
                             tuple(feats.shape), (time.time() - t0) / step)
            if step % VALID_INTERVAL == 0:
                valid = compute_validation_loss(model, rank, world)
                if rank == 0:
                    logging.info("epoch %d step %d validation loss %.4f", epoch, step, valid)
            if step % SAVE_INTERVAL == 0 and rank == 0:
                os.makedirs("exp", exist_ok=True)
                torch.save({"model": model.module.state_dict(), "step": step}, "exp/checkpoint.pt.tmp")
                os.replace("exp/checkpoint.pt.tmp", "exp/checkpoint.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
