import time

import torch


@torch.no_grad()
def pass_at_k(model, problems=14, samples=5):
    """Samples answers one by one on the main process and scores them with a slow checker."""
    model.eval()
    solved = 0
    for i in range(problems):
        g = torch.Generator().manual_seed(i)
        state = torch.randn(1, 32, generator=g)
        for _ in range(samples):
            for _ in range(40):
                state = torch.tanh(model(state)) + 0.01 * torch.randn(1, 32, generator=g)
            time.sleep(0.25)
        solved += int(state.mean() > 0)
        if i % 5 == 0:
            print(f"  eval {i + 1}/{problems}", flush=True)
    model.train()
    return solved / problems
