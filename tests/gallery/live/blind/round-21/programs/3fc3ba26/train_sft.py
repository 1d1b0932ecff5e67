import argparse
import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from batching import packs, read_lengths, split_by_tokens
from layers import PackedAttentionLM


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--token-budget", type=int, default=2048)
    p.add_argument("--steps", type=int, default=20000)
    args = p.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(minutes=45))
    rank, world = dist.get_rank(), dist.get_world_size()
    lengths = split_by_tokens(read_lengths(), world)[rank]
    torch.manual_seed(0)
    model = DDP(PackedAttentionLM())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    source = packs(lengths, args.token_budget, random.Random(rank))
    for step in range(1, args.steps + 1):
        pack = next(source)
        ids = torch.randint(0, 64, (sum(pack),))
        logits = model(ids, pack)
        loss = logits.logsumexp(-1).mean() - logits[:, 0].mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:
            tokens = torch.tensor([float(sum(pack))])
            dist.all_reduce(tokens)
            if rank == 0:
                print(f"step {step} loss {loss.item():.4f} tokens/step {int(tokens)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
