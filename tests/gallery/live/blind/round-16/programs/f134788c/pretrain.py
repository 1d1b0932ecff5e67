import argparse
import random
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from model import LM
from sampler import MultipackSampler

BUDGET = 512


class Corpus:
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.lengths = [rng.randint(24, 160) for _ in range(n)]

    def pack(self, idx):
        row = torch.cat([torch.randint(0, 1000, (self.lengths[i],),
                                       generator=torch.Generator().manual_seed(i)) for i in idx])
        return torch.nn.functional.pad(row[:BUDGET], (0, BUDGET - min(BUDGET, len(row)))).view(4, BUDGET // 4)


def batches(corpus, rank, world):
    epoch = 0
    while True:
        for idx in MultipackSampler(corpus.lengths, BUDGET, rank, world).epoch(epoch):
            yield corpus.pack(idx)
        epoch += 1


class ShardedEMA:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.shadow = {n: p.detach().to_local().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n].lerp_(p.detach().to_local(), 1 - self.decay)


class Checkpointer:
    def __init__(self, root, keep=2):
        self.root, self.keep, self.pending, self.done = root, keep, None, []
        self.group = dist.new_group(backend="gloo")

    def save(self, model, opt, step):
        if self.pending is not None:
            self.pending.result()
        path = "%s/step_%06d" % (self.root, step)
        m, o = get_state_dict(model, opt)
        self.pending = dcp.async_save({"model": m, "optim": o}, checkpoint_id=path, process_group=self.group)
        self.done.append(path)
        if dist.get_rank() == 0:
            for old in self.done[:-self.keep - 1]:
                shutil.rmtree(old, ignore_errors=True)


@torch.no_grad()
def evaluate(model, corpus, rank, world, sync_every=10):
    model.eval()
    tot, n = torch.zeros(1), 0
    for i, tokens in enumerate(batches(corpus, rank, world)):
        if i == 30:
            break
        tot += model(tokens)
        n += 1
        if n % sync_every == 0:
            dist.barrier()
    dist.all_reduce(tot)
    model.train()
    return tot.item() / n / world


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--accum", type=int, default=4)
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--save-every", type=int, default=40)
    p.add_argument("--eval-every", type=int, default=25)
    p.add_argument("--out", default="ckpt")
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    model = LM()
    for b in model.blocks:
        fully_shard(b, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    ema, ckpt = ShardedEMA(model), Checkpointer(args.out)
    train, val = Corpus(6000, 1), Corpus(800, 2)
    stream = batches(train, rank, world)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        total = 0.0
        for k in range(args.accum):
            model.set_requires_gradient_sync(k == args.accum - 1)
            loss = model(next(stream)) / args.accum
            loss.backward()
            total += loss.item()
        opt.step()
        opt.zero_grad(set_to_none=True)
        ema.update(model)
        if rank == 0 and step % 5 == 0:
            print("step %d loss %.4f %.2f s/step" % (step, total, (time.time() - t0) / step))
        if step % args.eval_every == 0:
            v = evaluate(model, val, rank, world)
            if rank == 0:
                print("step %d eval loss %.4f" % (step, v))
        if step % args.save_every == 0:
            ckpt.save(model, opt, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
