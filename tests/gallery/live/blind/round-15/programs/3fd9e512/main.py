import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from policy import Policy, policy_loss, rollout
from reward_client import RemoteReward


def worker(rank, args, port, endpoints):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=args.world_size)
    torch.manual_seed(100 + rank)
    policy = Policy()
    model = DDP(policy)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    reward_fn = RemoteReward(endpoints)

    for step in range(args.steps):
        t0 = time.time()
        prompts = torch.randint(0, 512, (args.rollout_batch, 8))
        ids = rollout(policy, prompts, 24)
        t1 = time.time()
        rewards = torch.tensor(reward_fn(ids.tolist()))
        t2 = time.time()
        baseline = rewards.mean()
        dist.all_reduce(baseline)
        advantage = rewards - baseline / args.world_size
        loss = policy_loss(model(ids), ids, advantage, 8)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 5 == 0:
            print(f"step {step} reward {rewards.mean():.3f} time/rollout {t1 - t0:.3f} "
                  f"time/reward {t2 - t1:.3f} time/update {time.time() - t2:.3f}", flush=True)
    dist.destroy_process_group()


def start_replicas(n, workdir):
    procs, endpoints = [], []
    for i in range(n):
        port_file = os.path.join(workdir, f"reward_{i}.port")
        procs.append(subprocess.Popen([sys.executable, "reward_server.py", "--port-file", port_file]))
    for i in range(n):
        port_file = os.path.join(workdir, f"reward_{i}.port")
        while not os.path.exists(port_file):
            time.sleep(0.2)
        endpoints.append(f"http://127.0.0.1:{open(port_file).read()}/reward")
    return procs, endpoints


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--world-size", type=int, default=3)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--rollout-batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=5000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as workdir:
        procs, endpoints = start_replicas(args.replicas, workdir)
        print("reward endpoints:", " ".join(endpoints), flush=True)
        try:
            mp.spawn(worker, (args, free_port(), endpoints), nprocs=args.world_size)
        finally:
            for p in procs:
                p.terminate()


if __name__ == "__main__":
    main()
