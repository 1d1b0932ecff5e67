import multiprocessing as mp
import os
import queue


def _write(q, root):
    import torch

    while (item := q.get()) is not None:
        step, state = item
        tmp = os.path.join(root, "next.pt")
        torch.save(state, tmp)
        os.replace(tmp, os.path.join(root, f"step_{step % 3}.pt"))


class AsyncSaver:
    """Writes checkpoints from a process of its own; a checkpoint is skipped while one is being written."""

    def __init__(self, root):
        ctx = mp.get_context("spawn")
        self.q = ctx.Queue(maxsize=1)
        self.proc = ctx.Process(target=_write, args=(self.q, root), daemon=True)
        self.proc.start()

    def save(self, step, model):
        state = {k: v.numpy().copy() for k, v in model.state_dict().items()}
        try:
            self.q.put_nowait((step, state))
        except queue.Full:
            return False
        return True
