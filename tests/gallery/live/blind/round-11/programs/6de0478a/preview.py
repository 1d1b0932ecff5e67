import multiprocessing as mp
import os

import numpy as np


def _render(queue, out, limit):
    done = 0
    while done < limit:
        step, pairs = queue.get()
        grid = np.concatenate([np.concatenate(p, 1) for p in pairs], 0)
        np.save(os.path.join(out, f"step{step:06d}.npy"), (grid * 255).clip(0, 255).astype("uint8"))
        done += 1


class PreviewWriter:
    def __init__(self, out, limit=16):
        os.makedirs(out, exist_ok=True)
        ctx = mp.get_context("spawn")
        self.queue = ctx.Queue()
        self.proc = ctx.Process(target=_render, args=(self.queue, out, limit), name="preview", daemon=True)
        self.proc.start()

    def add(self, step, inputs, outputs):
        pairs = list(zip(inputs[:4, 0].numpy(), outputs[:4, 0].detach().numpy()))
        self.queue.put((step, pairs))

    def close(self):
        self.proc.join()
