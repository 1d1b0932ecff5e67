import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from client import InferenceClient

VOCAB, PROMPT, GEN, BATCH = 64, 12, 20, 6


class Policy(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.GELU())
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        return self.head(self.mlp(self.emb(ids)))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    sampler = world - 1
    torch.manual_seed(0)
    model = DDP(Policy())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    client = InferenceClient(VOCAB) if rank == sampler else None
    gen = torch.Generator().manual_seed(3)
    tokens = torch.zeros(BATCH * world, PROMPT + GEN, dtype=torch.long)
    step, t0 = 0, time.time()
    while step < 100000:
        if rank == sampler:
            prompts = torch.randint(0, VOCAB, (BATCH * world, PROMPT), generator=gen)
            outs = client.generate(prompts.tolist(), GEN)
            tokens.copy_(torch.cat([prompts, torch.tensor(outs)], 1))
        dist.broadcast(tokens, src=sampler)
        mine = tokens[rank * BATCH:(rank + 1) * BATCH]
        reward = (mine[:, PROMPT:] % 7 == mine[:, :1] % 7).float()
        adv = reward - reward.mean()
        for _ in range(4):
            logp = model(mine[:, :-1]).log_softmax(-1).gather(-1, mine[:, 1:, None]).squeeze(-1)
            loss = -(logp[:, PROMPT - 1:] * adv).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if step % 10 == 0:
            if rank == sampler:
                with torch.no_grad():
                    w = model.module(tokens[:, -1]).softmax(-1).mean(0)
                client.update_weights(w.tolist())
            if rank == 0:
                print(f"step {step} loss {loss.item():.4f} reward {reward.mean():.3f} "
                      f"{time.time() - t0:.1f}s", flush=True)
        step += 1
    if client:
        client.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
