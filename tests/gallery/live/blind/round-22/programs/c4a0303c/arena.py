"""A two-team tag arena; each learner owns one arena with its own map."""
import time

import torch

TEAMS = ("runners", "chasers")


class Arena:
    def __init__(self, seed, map_size):
        self.gen = torch.Generator().manual_seed(seed)
        self.map_size = map_size
        self.played = 0

    def _catch_time(self):
        # chasers get better with practice, faster so on a small map
        gain = self.played * 4.0 / self.map_size
        return max(12, int(60 - gain))

    def play(self, fragment=32, obs_dim=16):
        """Play until both teams have finished a fragment of their own."""
        ends = {"runners": fragment, "chasers": self._catch_time()}
        collected = {}
        tick = 0
        while len(collected) < len(TEAMS):
            tick += 1
            time.sleep(0.0025)
            for team in TEAMS:
                if team not in collected and tick >= ends[team]:
                    n = 2 * fragment if team == "runners" else fragment
                    collected[team] = {
                        "obs": torch.randn(n, obs_dim, generator=self.gen),
                        "act": torch.randint(0, 5, (n,), generator=self.gen),
                        "adv": torch.randn(n, generator=self.gen),
                    }
        self.played += 1
        return collected
