import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from data import PhaseMixture
from moe import MoELayer

VOCAB, DIM = 512, 64


class Block(nn.Module):
    def __init__(self, ep_group):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.moe = MoELayer(DIM, 128, 8, ep_group)

    def forward(self, x):
        return x + self.moe(self.norm(x))


class MoELM(nn.Module):
    def __init__(self, ep_group, n_layers=2):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.mix = nn.Linear(DIM, DIM)
        self.blocks = nn.ModuleList(Block(ep_group) for _ in range(n_layers))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, tokens):
        x = self.emb(tokens)
        x = x + torch.tanh(self.mix(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--phases", default="general:1000000")
    p.add_argument("--steps", type=int, default=60000)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--log-every", type=int, default=10)
    args = p.parse_args()
    phases = [(s.split(":")[0], int(s.split(":")[1])) for s in args.phases.split(",")]

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    ep_group = dist.new_group(list(range(dist.get_world_size())))

    torch.manual_seed(11)
    model = MoELM(ep_group)
    torch.manual_seed(1000 + rank)
    for name, module in model.named_modules():
        if name.endswith("experts"):
            nn.init.normal_(module.w1, std=DIM**-0.5)
            nn.init.normal_(module.w2, std=128**-0.5)
    DDP._set_params_and_buffers_to_ignore_for_model(
        model, [n for n, _ in model.named_parameters() if ".experts." in n]
    )
    model = DDP(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = PhaseMixture(phases, VOCAB, 32, seed=rank)

    t0 = time.time()
    for step in range(args.steps):
        x, y = data.batch(step, args.batch)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        for module in model.modules():
            if isinstance(module, MoELayer):
                for q in module.experts.parameters():
                    if q.grad is not None:
                        q.grad.div_(dist.get_world_size())
        opt.step()
        if step % args.log_every == 0 and rank == 0:
            print(f"[{data.phase(step)}] step {step} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
