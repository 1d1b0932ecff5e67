import json
import random
import time

TOOLS = ["search", "calc", "lookup", "finish"]


class ToolUseEnv:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        with open("api_keys.json") as f:
            keys = json.load(f)
        self.key = keys[seed % len(keys)]
        self.calls = 0

    def reset(self):
        self.t = 0
        self.budget = self.rng.randint(3, 8)
        return self._obs()

    def _obs(self):
        return [self.rng.gauss(0, 1) for _ in range(8)]

    def _reply(self, tool):
        time.sleep(0.02)
        if tool == "lookup":
            self.calls += 1
            if self.calls > self.key["daily_quota"]:
                return json.dumps({"tool": tool, "error": "quota exceeded"})
        return json.dumps({"tool": tool, "score": round(self.rng.random(), 3)})

    def step(self, action):
        self.t += 1
        tool = TOOLS[action]
        if tool == "finish" or self.t >= self.budget:
            return self._obs(), 0.0, True
        reply = json.loads(self._reply(tool))
        return self._obs(), reply["score"], False
