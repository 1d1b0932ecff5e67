import torch
import torch.distributed.rpc as rpc

import policy
from envs import PointMass

_envs = {}


def run_episode(actor_id, env_id, length, gamma=0.97):
    key = (actor_id, env_id)
    if key not in _envs:
        _envs[key] = PointMass(seed=1000 * actor_id + env_id)
    env = _envs[key]
    obs = env.reset()
    traj, rewards = [], []
    for _ in range(length):
        action = rpc.rpc_sync("learner", policy.select_action, args=(obs,))
        traj.append((obs, action))
        obs, reward = env.step(action)
        rewards.append(reward)
    ret, returns = 0.0, []
    for r in reversed(rewards):
        ret = r + gamma * ret
        returns.append(ret)
    return (
        torch.stack([o for o, _ in traj]),
        torch.tensor([a for _, a in traj]),
        torch.tensor(list(reversed(returns))),
    )
