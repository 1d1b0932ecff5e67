import argparse
import time
import torch
import torch.distributed as dist
from art_like.model import Policy, rollouts
from art_like.service import TrainService, Clock


def micro_step(policy):
    def run(item):
        obs, r = item
        lp = policy(obs)
        loss = -(lp.max() * r)
        loss.backward()
        return {"loss": loss.item(), "reward": r.item()}
    return run


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--project")
    p.add_argument("--trajectories", type=int, default=8)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    policy = Policy()
    opt = torch.optim.SGD(policy.parameters(), lr=1e-3)
    svc, clock = TrainService(micro_step(policy)), Clock()
    rnd = 0
    while True:
        opt.zero_grad()
        stats = []
        for res in svc.train(rollouts(a.trajectories, rank, rnd)):
            stats.append(res["reward"])
            if res["reward"] < -5:
                print(f"[{a.project}] rank {rank}: round {rnd} clipped, outlier reward {res['reward']:.1f}", flush=True)
                break
        time.sleep(0.8)
        for q in policy.parameters():
            if q.grad is None:
                q.grad = torch.zeros_like(q)
            dist.all_reduce(q.grad)
            q.grad /= world
        opt.step()
        if rank == 0:
            print(f"[{a.project}] round {rnd} mean reward {sum(stats)/len(stats):+.3f} ({clock.lap():.2f}s)", flush=True)
        rnd += 1


if __name__ == "__main__":
    main()
