import argparse
import logging
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from engine.checkpoint import Checkpointer
from engine.model import TinyLM


class TokenStream:
    def __init__(self, rank, vocab, ctx, batch):
        self.gen = torch.Generator().manual_seed(100 + rank)
        self.vocab, self.ctx, self.batch = vocab, ctx, batch
        self.consumed = 0

    def next(self):
        self.consumed += self.batch
        base = torch.randint(0, self.vocab, (self.batch, 1), generator=self.gen)
        return (base + torch.arange(self.ctx + 1) * 7) % self.vocab

    def state_dict(self):
        return {"consumed": self.consumed, "gen": self.gen.get_state()}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--work-dir", required=True)
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--save-every", type=int, default=60)
    args = p.parse_args()

    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    log = logging.getLogger("train")
    torch.manual_seed(0)

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = TinyLM()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optim = torch.optim.AdamW(model.parameters(), lr=3e-4)
    ckpt = Checkpointer(os.path.join(args.work_dir, "ckpt"))
    stream = TokenStream(rank, 512, 48, 4)

    t0 = time.time()
    for step in range(1, args.steps + 1):
        ids = stream.next()
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        optim.zero_grad()
        if step % 20 == 0 and rank == 0:
            log.info("step %d loss %.3f %.1f it/s", step, loss.item(), 20 / (time.time() - t0))
            t0 = time.time()
        if step % args.save_every == 0:
            ok = ckpt.save(step, model, optim, stream.state_dict())
            if ok and rank == 0:
                log.info("saved checkpoint step_%d", step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
