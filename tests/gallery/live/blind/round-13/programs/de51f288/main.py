import argparse
import os
import time

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

import policy
import rollout

# iteration -> environments per actor
ENV_SCHEDULE = [(0, 1), (12, 2), (30, 3)]


def envs_per_actor(it):
    n = 1
    for start, value in ENV_SCHEDULE:
        if it >= start:
            n = value
    return n


def learner_loop(args):
    server = policy.create_server()
    for it in range(args.iterations):
        t0 = time.time()
        n = envs_per_actor(it)
        server.begin(n * args.actors)
        futs = [
            rpc.rpc_async(f"actor{a}", rollout.run_episode, args=(a, e, args.rollout_len))
            for a in range(1, args.actors + 1)
            for e in range(n)
        ]
        results = [f.wait() for f in futs]
        obs = torch.cat([r[0] for r in results])
        act = torch.cat([r[1] for r in results])
        ret = torch.cat([r[2] for r in results])
        loss = server.update(obs, act, ret)
        if it % 10 == 0:
            print(f"iter {it} envs {n * args.actors} loss {loss:.4f} return {ret.mean():.3f} "
                  f"{time.time() - t0:.3f}s", flush=True)


def run(rank, world, args):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(world)
    opts = rpc.TensorPipeRpcBackendOptions(num_worker_threads=args.rpc_threads, rpc_timeout=1800)
    name = "learner" if rank == 0 else f"actor{rank}"
    rpc.init_rpc(name, rank=rank, world_size=world, rpc_backend_options=opts)
    if rank == 0:
        learner_loop(args)
    rpc.shutdown()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--actors", type=int, default=2)
    p.add_argument("--rollout-len", type=int, default=12)
    p.add_argument("--iterations", type=int, default=20000)
    p.add_argument("--rpc-threads", type=int, default=4)
    args = p.parse_args()
    world = args.actors + 1
    mp.spawn(run, args=(world, args), nprocs=world, join=True)
