import argparse
import time
import torch
import torch.distributed as dist
from rl.venv import SubEnv


def cfg():
    p = argparse.ArgumentParser()
    p.add_argument("--envs", type=int, default=2)
    p.add_argument("--scene", default="kitchen")
    p.add_argument("--horizon", type=int, default=8)
    return p.parse_args()


class EnvWorker:
    def __init__(self, c, rank):
        self.env, self.n = SubEnv(c.scene, rank, c.envs), c.envs

    def rollout(self, policy, horizon):
        data = []
        for _ in range(horizon):
            o = torch.tensor(self.env.last)
            with torch.no_grad():
                a = torch.distributions.Categorical(logits=policy(o)).sample()
            _, r = self.env.step(a.tolist())
            data.append((o, a, torch.tensor(r)))
            time.sleep(0.02)
        return data


def main():
    c = cfg()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    w = EnvWorker(c, rank)
    torch.manual_seed(0)
    policy = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
    ddp = torch.nn.parallel.DistributedDataParallel(policy)
    opt = torch.optim.Adam(ddp.parameters(), 3e-4)
    it = 0
    while True:
        t = time.time()
        data = w.rollout(policy, c.horizon)
        o, a, r = (torch.cat([d[i] for d in data]) for i in range(3))
        logp = torch.distributions.Categorical(logits=ddp(o)).log_prob(a)
        loss = -(logp * (r - r.mean())).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        it += 1
        time.sleep(0.5)
        if rank == 0:
            print(f"iter {it:4d} | return {r.mean():+.3f} | {time.time() - t:.2f}s", flush=True)


if __name__ == "__main__":
    main()
