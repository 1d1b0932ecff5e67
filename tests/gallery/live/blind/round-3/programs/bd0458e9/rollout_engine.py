import random
import subprocess
import sys

import torch

SANDBOX = "import sys, time\nfor line in sys.stdin:\n    time.sleep(float(line)); print('ok', flush=True)\n"


class RolloutEngine:
    def __init__(self, rank, model, temperature=1.0):
        self.rnd = random.Random(1000 + rank)
        self.model = model
        self.temperature = temperature
        self.sandbox = subprocess.Popen([sys.executable, "-u", "-c", SANDBOX], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def _run_tool(self, seconds):
        self.sandbox.stdin.write(f"{seconds}\n")
        self.sandbox.stdin.flush()
        return self.sandbox.stdout.readline().strip()

    @torch.no_grad()
    def generate(self, n, max_tokens=1500):
        out = []
        for _ in range(n):
            length = min(max_tokens, int(self.rnd.paretovariate(1.1) * 60))
            ids = torch.zeros(1, 1, dtype=torch.long)
            h = None
            toks = []
            for _ in range(length):
                logits, h = self.model(ids, h)
                ids = torch.multinomial((logits[:, -1] / self.temperature).softmax(-1), 1)
                toks.append(int(ids))
            if length >= 500:
                self._run_tool(min(9.0, length / 160))
            out.append(toks)
        return out
