import gzip
import multiprocessing as mp
import random

import numpy as np
import torch

RECORD = 8 * 8 * 4 + 4


def read_chunk(path):
    with gzip.open(path, "rb") as f:
        raw = np.frombuffer(f.read(), dtype=np.uint8).reshape(-1, RECORD)
    planes = raw[:, : RECORD - 4].reshape(-1, 4, 8, 8)
    value = raw[:, RECORD - 4 :].copy().view(np.float32)[:, 0]
    return planes, value


def chunk_source(paths, pipes, seed, sample):
    rng = random.Random(seed)
    epoch = 0
    while True:
        order = list(paths)
        if epoch:
            rng.shuffle(order)
        for i, path in enumerate(order):
            picks = [rng.randrange(1 << 16) for _ in range(sample)]
            flips = [rng.random() for _ in range(sample)]
            pipes[i % len(pipes)].send((path, picks, flips))
        epoch += 1


def chunk_reader(pipe, out):
    while True:
        path, picks, flips = pipe.recv()
        planes, value = read_chunk(path)
        for p, f in zip(picks, flips):
            x = planes[p % len(planes)].astype(np.float32)
            if f < 0.5:
                x = x[:, :, ::-1].copy()
            out.put((x, value[p % len(value)]))


class ChunkParser:
    def __init__(self, paths, batch_size, workers=2, sample=256, seed=0):
        self.batch_size = batch_size
        self.out = mp.Queue(maxsize=512)
        self.processes, senders = [], []
        for i in range(workers):
            recv, send = mp.Pipe(duplex=False)
            senders.append(send)
            p = mp.Process(target=chunk_reader, args=(recv, self.out), name=f"reader-{i}", daemon=True)
            p.start()
            self.processes.append(p)
        p = mp.Process(target=chunk_source, args=(paths, senders, seed, sample), name="source", daemon=True)
        p.start()
        self.processes.append(p)
        self._recv = recv

    def batches(self):
        while True:
            items = [self.out.get() for _ in range(self.batch_size)]
            x = torch.from_numpy(np.stack([i[0] for i in items])) / 255.0
            y = torch.tensor([float(i[1]) for i in items])
            yield x, y
