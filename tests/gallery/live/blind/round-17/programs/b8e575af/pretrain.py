import argparse
import logging
import time
import warnings

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard

from checkpointer import DistributedCheckpointer
from stream import ShardStream

warnings.filterwarnings("ignore")
log = logging.getLogger("pretrain")


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self, vocab=256, dim=64, layers=3):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(32, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(layers))
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--save-every", type=int, default=40)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING, format=f"%(asctime)s rank{rank} %(message)s")
    logging.getLogger("torch").setLevel(logging.ERROR)

    torch.manual_seed(0)
    model = GPT()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    stream = ShardStream(args.data, rank)
    checkpointer = DistributedCheckpointer(args.out)

    tic = time.time()
    for step, (x, y) in enumerate(stream, start=1):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        optim.zero_grad()
        if step % 20 == 0:
            log.info("step %d loss %.4f %.0f ms/step", step, loss.item(), 1e3 * (time.time() - tic) / step)
        if step % args.save_every == 0:
            extra = {"step": step, "stream": stream.state_dict(), "rng": torch.get_rng_state()}
            try:
                checkpointer.save(step, model, optim, extra)
                log.info("step %d checkpoint started", step)
            except Exception:
                log.warning("step %d checkpoint failed, training goes on", step, exc_info=True)
        if step == args.steps:
            break
    checkpointer.wait_for_pending_save()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
