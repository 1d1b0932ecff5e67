import os
import pickle

import torch.multiprocessing as mp


def _write_loop(queue, root):
    while True:
        iteration, payload = queue.get()
        tmp = os.path.join(root, "in_progress")
        os.makedirs(tmp, exist_ok=True)
        for name, blob in payload.items():
            with open(os.path.join(tmp, name + ".pkl"), "wb") as f:
                pickle.dump(blob, f)
        os.rename(tmp, os.path.join(root, "latest"))
        with open(os.path.join(root, "latest_iteration.txt"), "w") as f:
            f.write(str(iteration))
        queue.task_done()


class AsyncCheckpointWriter:
    """One persistent process does the file work; at most one save is in flight."""

    def __init__(self, root):
        os.makedirs(root, exist_ok=True)
        ctx = mp.get_context("spawn")
        self.queue = ctx.JoinableQueue()
        self.proc = ctx.Process(target=_write_loop, args=(self.queue, root), daemon=True, name="ckpt-writer")
        self.proc.start()

    def schedule(self, iteration, payload):
        self.finalize()
        self.queue.put((iteration, payload))

    def finalize(self):
        self.queue.join()
