import argparse
import json
import logging
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from closed_loop import ClosedLoopEvaluator

log = logging.getLogger("planner")


class ScenarioDataset(Dataset):
    def __init__(self, n=6000, n_agents=12, horizon=8, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.ego = torch.randn(n, 4, generator=g)
        self.agents = torch.randn(n, n_agents, 4, generator=g)
        self.future = self.ego[:, None, :2] + 0.1 * torch.randn(n, horizon, 2, generator=g).cumsum(1)

    def __len__(self):
        return len(self.ego)

    def __getitem__(self, i):
        return self.ego[i], self.agents[i], self.future[i]


class Planner(nn.Module):
    def __init__(self, n_agents=12, horizon=8, width=192):
        super().__init__()
        self.horizon = horizon
        self.net = nn.Sequential(
            nn.Linear(4 + 4 * n_agents, width), nn.GELU(), nn.LayerNorm(width),
            nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, horizon * 2),
        )

    def forward(self, x):
        return self.net(x)


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=60)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--save-freq", type=int, default=5)
    p.add_argument("--closed-loop-freq", type=int, default=3)
    p.add_argument("--out", default="runs/planner")
    return p.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17 + rank)
    if rank == 0:
        os.makedirs(args.out, exist_ok=True)

    train_set = ScenarioDataset()
    sampler = DistributedSampler(train_set, world, rank, shuffle=True, drop_last=True)
    loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler, drop_last=True)
    val = ScenarioDataset(n=240, seed=5)
    scenarios = [(val.ego[i : i + 8], val.agents[i : i + 8]) for i in range(0, 240, 8)]

    model = DDP(Planner())
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    evaluator = ClosedLoopEvaluator(scenarios)
    history = []

    for epoch in range(1, args.epochs + 1):
        model.train()
        sampler.set_epoch(epoch)
        total, t0 = 0.0, time.time()
        for ego, agents, future in loader:
            pred = model(torch.cat([ego, agents.flatten(1)], dim=1)).view(len(ego), -1, 2)
            loss = nn.functional.smooth_l1_loss(pred, future)
            optim.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optim.step()
            total += loss.item()
        if rank == 0:
            log.info("epoch %d loss %.4f (%.1fs)", epoch, total / len(loader), time.time() - t0)
            row = {"epoch": epoch, "loss": total / len(loader)}
            if epoch % args.closed_loop_freq == 0:
                model.eval()
                row.update(evaluator.run(model.module))
                log.info("closed loop: %s", row)
            history.append(row)
            with open(os.path.join(args.out, "history.json"), "w") as f:
                json.dump(history, f)
            if epoch % args.save_freq == 0:
                torch.save(model.module.state_dict(), os.path.join(args.out, f"planner_{epoch}.pt"))

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
