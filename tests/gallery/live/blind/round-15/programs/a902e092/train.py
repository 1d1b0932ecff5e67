import argparse
import time

import numpy as np
import torch
import torch.distributed as dist

from her.agent import DDPGAgent
from her.env import ReachEnv


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n-epochs", type=int, default=50)
    parser.add_argument("--n-cycles", type=int, default=10)
    parser.add_argument("--n-batches", type=int, default=20)
    parser.add_argument("--rollouts", type=int, default=384)
    parser.add_argument("--demo-episodes", type=int, default=2048)
    parser.add_argument("--buffer-size", type=int, default=600_000)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(125 + rank)
    np.random.seed(125 + rank)

    env = ReachEnv(args.rollouts, seed=9 + rank)
    agent = DDPGAgent(env.params, args.buffer_size)
    demo_env = ReachEnv(args.demo_episodes, seed=500 + rank)
    episodes, _ = agent.collect(demo_env, noise=0.0, eps=1.0)
    agent.buffer.store_episode(episodes)

    for epoch in range(args.n_epochs):
        for cycle in range(args.n_cycles):
            t0 = time.time()
            episodes, success = agent.collect(env)
            agent.buffer.store_episode(episodes)
            t1 = time.time()
            for _ in range(args.n_batches):
                loss = agent.update()
            agent.soft_update()
            if rank == 0:
                print(f"[{time.strftime('%H:%M:%S')}] epoch {epoch} cycle {cycle} success {success:.2f} "
                      f"q_loss {loss:.3f} stored {agent.buffer.n_transitions_stored} "
                      f"rollout {t1 - t0:.2f}s update {time.time() - t1:.2f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
