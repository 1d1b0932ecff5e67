import logging
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from workers import RolloutPool


class Net(nn.Module):
    def __init__(self, obs_dim=48, hidden=128, actions=8):
        super().__init__()
        self.pi1, self.pi2 = nn.Linear(obs_dim, hidden), nn.Linear(hidden, actions)
        self.vf = nn.Sequential(nn.Linear(obs_dim, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1))

    def forward(self, obs):
        return self.pi2(torch.tanh(self.pi1(obs))), self.vf(obs).squeeze(-1)

    def export(self):
        g = lambda t: t.detach().numpy().copy()
        return {"w1": g(self.pi1.weight.T), "b1": g(self.pi1.bias), "w2": g(self.pi2.weight.T), "b2": g(self.pi2.bias)}


def gae(part, values, gamma=0.97, lam=0.95):
    adv = np.zeros(len(part["rew"]), dtype=np.float32)
    last, nxt = 0.0, values[-1]
    for t in reversed(range(len(adv))):
        alive = 1.0 - part["done"][t]
        delta = part["rew"][t] + gamma * nxt * alive - values[t]
        last = delta + gamma * lam * alive * last
        adv[t], nxt = last, values[t]
    return adv


def learner(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.num_learners)
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s learner{rank} %(message)s")
    log = logging.getLogger("ppo")
    torch.manual_seed(1)
    net = Net()
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    torch.manual_seed(50 + rank)
    pool = RolloutPool(args.num_workers, 1000 * (rank + 1), args.buffer_size // args.num_workers)

    for update in range(1, args.max_updates + 1):
        t0 = time.time()
        parts = pool.collect(net.export())
        t1 = time.time()
        obs = torch.from_numpy(np.concatenate([p["obs"] for p in parts]))
        act = torch.from_numpy(np.concatenate([p["act"] for p in parts]))
        logp = torch.from_numpy(np.concatenate([p["logp"] for p in parts]))
        with torch.no_grad():
            values = net(obs)[1].numpy()
        adv, i = [], 0
        for p in parts:
            adv.append(gae(p, values[i:i + len(p["rew"])]))
            i += len(p["rew"])
        adv = torch.from_numpy(np.concatenate(adv))
        ret = adv + torch.from_numpy(values)
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
        stop = False
        for epoch in range(args.num_epoch):
            kls = []
            for idx in torch.randperm(len(adv)).chunk(6):
                logits, v = model(obs[idx])
                d = torch.distributions.Categorical(logits=logits)
                lr_ = d.log_prob(act[idx]) - logp[idx]
                ratio = lr_.exp()
                loss = -torch.min(ratio * adv[idx], ratio.clamp(0.8, 1.2) * adv[idx]).mean()
                loss = loss + 0.5 * (v - ret[idx]).pow(2).mean() - 0.005 * d.entropy().mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
                kls.append((0.5 * lr_.detach() ** 2).mean())
            kl = torch.stack(kls).mean()
            dist.all_reduce(kl)
            if kl / args.num_learners > args.target_kl:
                break
        stats = torch.tensor([np.mean([p["rew"].mean() for p in parts]), t1 - t0, time.time() - t1])
        dist.all_reduce(stats)
        stats /= args.num_learners
        if rank == 0:
            log.info("update %d reward %.3f loss %.3f epochs %d (collect %.1fs, update %.1fs)",
                     update, stats[0], loss.item(), epoch + 1, stats[1], stats[2])
    pool.close()
    dist.destroy_process_group()
