import os
import time

import torch

from handshake import SamplerSide


def run_sampler(root, weights_path, vocab):
    """Draws continuations with the newest exported weights."""
    torch.set_num_threads(1)
    side = SamplerSide(os.path.join(root, "pause"))
    emb, drawn = torch.randn(vocab, 16), 0
    parent = os.getppid()
    while os.getppid() == parent:
        side.poll()
        if os.path.exists(weights_path):
            try:
                emb = torch.load(weights_path, weights_only=True)
            except (EOFError, RuntimeError):
                pass
        probs = torch.softmax(emb @ emb[drawn % vocab], 0)
        torch.multinomial(probs, 32, replacement=True)
        drawn += 1
        time.sleep(0.3)
