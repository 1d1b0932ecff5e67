import argparse
import os
import socket
import time

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

from batch_agent import Agent
from envs import RemoteEnv

_env = None


def play_episode(agent_rref, observer_id, frame_time):
    global _env
    if _env is None:
        _env = RemoteEnv(seed=observer_id)
    state, reward, done = _env.reset(frame_time), None, False
    while not done:
        actions = rpc.rpc_sync(agent_rref.owner(), Agent.select_action, args=(agent_rref, observer_id, state, reward))
        state, reward, done = _env.step(actions[observer_id])
    rpc.rpc_sync(agent_rref.owner(), Agent.finish, args=(agent_rref, observer_id, reward))


def evaluate(observer_id, weights, episodes):
    from batch_agent import Policy
    from envs import Corridor
    policy = Policy()
    policy.load_state_dict(weights)
    env, lengths = Corridor(seed=50 + observer_id), []
    for _ in range(episodes):
        state, done = env.reset(frame_time=0.03), False
        while not done:
            with torch.no_grad():
                action = policy(torch.tensor(state)).argmax().item()
            state, _, done = env.step(action)
        lengths.append(env.t)
    return sum(lengths) / len(lengths)


def run(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.manual_seed(rank)
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=16, rpc_timeout=600)
    rpc.init_rpc("agent" if rank == 0 else f"observer{rank}", rank=rank, world_size=args.observers + 1,
                 rpc_backend_options=options)
    if rank == 0:
        agent = Agent(args.observers)
        agent_rref = rpc.RRef(agent)
        names = [f"observer{i + 1}" for i in range(args.observers)]
        for episode in range(1, args.episodes + 1):
            started = time.time()
            agent.begin_episode()
            futures = [rpc.rpc_async(name, play_episode, args=(agent_rref, i, 0.02 + 0.02 * ((i + episode) % 3)))
                       for i, name in enumerate(names)]
            torch.futures.wait_all(futures)
            loss, reward = agent.learn()
            print(f"episode {episode} loss {loss:+.3f} reward {reward:+.2f} ({time.time() - started:.1f}s)", flush=True)
            if episode % 20 == 0:
                weights = agent.policy.state_dict()
                scores = [rpc.rpc_async(name, evaluate, args=(i, weights, 14)) for i, name in enumerate(names)]
                print(f"eval lengths {[round(f.wait(), 1) for f in scores]}", flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--observers", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=1000)
    args = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(args, port), nprocs=args.observers + 1)
