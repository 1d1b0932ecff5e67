import io
import multiprocessing as mp
import os
import queue
import threading
import time

import torch


class CheckpointWriter(threading.Thread):
    """Copies checkpoints to the archive disk in small pieces, off the training thread."""

    def __init__(self, root, rate=400_000, chunk=100_000):
        super().__init__(daemon=True, name="ckpt-writer")
        os.makedirs(root, exist_ok=True)
        self.root, self.rate, self.chunk = root, rate, chunk
        self.q = queue.Queue()
        self.start()

    def submit(self, name, obj):
        if self.q.qsize() > 1:
            return False
        buf = io.BytesIO()
        torch.save(obj, buf)
        self.q.put((name, buf.getbuffer()))
        return True

    def run(self):
        while True:
            name, data = self.q.get()
            path = os.path.join(self.root, name)
            with open(path + ".part", "wb") as f:
                for i in range(0, len(data), self.chunk):
                    f.write(data[i:i + self.chunk])
                    f.flush()
                    time.sleep(self.chunk / self.rate)
            os.replace(path + ".part", path)


def plot_loop(q, root):
    os.nice(5)
    while True:
        item = q.get()
        if item is None:
            return
        epoch, cm = item
        with open(os.path.join(root, "confusion_%d.pgm" % (epoch % 5)), "w") as f:
            f.write("P2 %d %d 255\n" % (len(cm), len(cm)))
            top = max(1, max(map(max, cm)))
            for row in cm:
                f.write(" ".join(str(int(255 * v / top)) for v in row) + "\n")


def start_plotter(root):
    ctx = mp.get_context("spawn")
    q = ctx.Queue()
    p = ctx.Process(target=plot_loop, args=(q, root), daemon=True, name="plotter")
    p.start()
    return p, q
