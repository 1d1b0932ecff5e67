import argparse
import json
import logging
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

logger = logging.getLogger("finetune")


class LoRALinear(nn.Module):
    def __init__(self, d_in, d_out, r=4, alpha=8):
        super().__init__()
        self.base = nn.Linear(d_in, d_out)
        self.base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(r, d_in) * 0.02)
        self.b = nn.Parameter(torch.zeros(d_out, r))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.a.t() @ self.b.t()) * self.scale


class Net(nn.Module):
    def __init__(self, vocab=500, dim=96, layers=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.emb.requires_grad_(False)
        self.layers = nn.ModuleList(LoRALinear(dim, dim) for _ in range(layers))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = x + F.silu(layer(x))
        return self.head(x)


def layer_report(model):
    rows = []
    for name, p in model.named_parameters():
        if p.grad is not None:
            rows.append(f"    {name:<28} |w| {p.norm().item():9.4f}  |g| {p.grad.norm().item():9.6f}")
    return "\n".join(rows)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=20000)
    ap.add_argument("--bs", type=int, default=16)
    ap.add_argument("--length", type=int, default=32)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--verbose", action="store_true")
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.ERROR,
                        format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    torch.manual_seed(0)
    model = DDP(Net())
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=args.lr)
    gen = torch.Generator().manual_seed(rank)

    for step in range(1, args.steps + 1):
        ids = (torch.randint(0, 500, (args.bs, 1), generator=gen) + torch.arange(args.length + 1)) % 500
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if rank == 0:
            logger.info("step %d loss %.4f", step, loss.item())
            if args.verbose and step % 5 == 0:
                logger.info("parameters\n%s", layer_report(model.module))
            if step % 10 == 0:
                with open("progress.json.tmp", "w") as f:
                    json.dump({"step": step, "total": args.steps, "loss": loss.item()}, f)
                os.replace("progress.json.tmp", "progress.json")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
