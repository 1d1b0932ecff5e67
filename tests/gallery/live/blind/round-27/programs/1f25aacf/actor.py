import queue
import time

import torch

from policy import CorridorEnv, make_policy


def act(actor_id, trajectories, weights, unroll):
    torch.set_num_threads(1)
    torch.manual_seed(actor_id)
    policy = make_policy()
    env = CorridorEnv(seed=actor_id)
    version = -1
    obs = env.reset()
    while True:
        try:
            while True:
                version, state = weights.get_nowait()
                policy.load_state_dict({k: torch.from_numpy(v) for k, v in state.items()})
        except queue.Empty:
            pass
        steps = []
        for _ in range(unroll):
            with torch.no_grad():
                action = torch.distributions.Categorical(logits=policy(obs)[:2]).sample()
            next_obs, reward, done = env.step(action.item())
            steps.append((obs.tolist(), action.item(), reward, done))
            obs = env.reset() if done else next_obs
        time.sleep(0.05)
        trajectories.put((actor_id, version, steps))
