import threading

import numpy as np


class ReplayBuffer:
    def __init__(self, env_params, buffer_size, sample_func):
        self.env_params = env_params
        self.T = env_params["max_timesteps"]
        self.size = buffer_size // self.T
        self.current_size = 0
        self.n_transitions_stored = 0
        self.sample_func = sample_func
        self.buffers = {
            "obs": np.empty([self.size, self.T + 1, env_params["obs"]], dtype=np.float32),
            "ag": np.empty([self.size, self.T + 1, env_params["goal"]], dtype=np.float32),
            "g": np.empty([self.size, self.T, env_params["goal"]], dtype=np.float32),
            "actions": np.empty([self.size, self.T, env_params["action"]], dtype=np.float32),
        }
        self.lock = threading.Lock()

    def store_episode(self, episode_batch):
        mb_obs, mb_ag, mb_g, mb_actions = episode_batch
        with self.lock:
            idxs = self._get_storage_idx(mb_obs.shape[0])
            self.buffers["obs"][idxs] = mb_obs
            self.buffers["ag"][idxs] = mb_ag
            self.buffers["g"][idxs] = mb_g
            self.buffers["actions"][idxs] = mb_actions
            self.n_transitions_stored += self.T * mb_obs.shape[0]

    def sample(self, batch_size):
        temp_buffers = {}
        with self.lock:
            for key in self.buffers.keys():
                temp_buffers[key] = self.buffers[key][:self.current_size].copy()
        temp_buffers["obs_next"] = temp_buffers["obs"][:, 1:, :]
        temp_buffers["ag_next"] = temp_buffers["ag"][:, 1:, :]
        return self.sample_func(temp_buffers, batch_size)

    def _get_storage_idx(self, inc):
        if self.current_size + inc <= self.size:
            idx = np.arange(self.current_size, self.current_size + inc)
        elif self.current_size < self.size:
            overflow = inc - (self.size - self.current_size)
            idx_a = np.arange(self.current_size, self.size)
            idx_b = np.random.randint(0, self.current_size, overflow)
            idx = np.concatenate([idx_a, idx_b])
        else:
            idx = np.random.randint(0, self.size, inc)
        self.current_size = min(self.size, self.current_size + inc)
        return idx


class HerSampler:
    def __init__(self, replay_k, reward_func):
        self.future_p = 1 - (1.0 / (1 + replay_k))
        self.reward_func = reward_func

    def __call__(self, episodes, batch_size):
        n_ep, T = episodes["actions"].shape[:2]
        ep = np.random.randint(0, n_ep, batch_size)
        t = np.random.randint(T, size=batch_size)
        tr = {key: episodes[key][ep, t].copy() for key in episodes}
        her = np.where(np.random.uniform(size=batch_size) < self.future_p)
        future = (np.random.uniform(size=batch_size) * (T - t)).astype(int)
        future_t = (t + 1 + future)[her]
        tr["g"][her] = episodes["ag"][ep[her], future_t]
        tr["r"] = self.reward_func(tr["ag_next"], tr["g"])[:, None]
        return tr
