import os
import threading
import time

import torch
import torch.distributed as dist
import torch.nn as nn

from actors import ActorPool


class Net(nn.Module):
    def __init__(self, d=4, h=64):
        super().__init__()
        self.l1, self.l2 = nn.Linear(d, h), nn.Linear(h, 1)
        self.v = nn.Sequential(nn.Linear(d, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))

    def mean(self, x):
        return self.l2(torch.tanh(self.l1(x))).squeeze(-1)

    def export(self):
        w1, b1, w2, b2 = (p.detach().numpy().copy() for p in (self.l1.weight, self.l1.bias, self.l2.weight, self.l2.bias))
        return w1.T, b1, w2.T, b2


class Heartbeat(threading.Thread):
    def __init__(self, state, every=10.0):
        super().__init__(daemon=True, name="heartbeat")
        self.state, self.every, self.stop = state, every, threading.Event()

    def run(self):
        while not self.stop.wait(self.every):
            print(f"[heartbeat] update {self.state['update']} return {self.state['ret']:.2f}", flush=True)


def average_gradients(net, world):
    for p in net.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


def main():
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    pool = ActorPool(3, 100, base=1000 * rank)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    state = {"update": 0, "ret": 0.0}
    if rank == 0:
        Heartbeat(state).start()
    pool.publish(net.export())

    while state["update"] < 1000000:
        t0 = time.time()
        trajs = pool.gather(12)
        t1 = time.time()
        batch = []
        with torch.no_grad():
            for o, a, r, d, last in trajs:
                o, a, r, d = map(torch.from_numpy, (o, a, r, d))
                g, out = net.v(torch.from_numpy(last)).squeeze(), []
                for t in reversed(range(len(r))):
                    g = r[t] / 10 + 0.98 * g * (1 - d[t])
                    out.insert(0, g)
                batch.append((o, a, torch.stack(out), r.mean()))
        O, A, G = (torch.cat([b[i] for b in batch]) for i in range(3))
        for _ in range(20):
            for idx in torch.randperm(len(O)).chunk(3):
                v = net.v(O[idx]).squeeze(-1)
                adv = (G[idx] - v).detach()
                adv = (adv - adv.mean()) / (adv.std() + 1e-6)
                logp = -(A[idx] - net.mean(O[idx])).pow(2) / (2 * 0.09)
                loss = -(logp.exp().detach().clamp(0, 1) * logp * adv).mean() + (v - G[idx]).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                average_gradients(net, world)
                opt.step()
        pool.publish(net.export())
        state["update"] += 1
        state["ret"] = float(torch.stack([b[3] for b in batch]).mean())
        if rank == 0:
            print(f"update {state['update']} collect {t1 - t0:.2f}s learn {time.time() - t1:.2f}s loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
