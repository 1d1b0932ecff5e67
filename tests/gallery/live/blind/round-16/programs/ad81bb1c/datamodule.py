import http.client
import os
import queue
import random
import threading

import numpy as np
import torch

DIM = 40


class BucketSampler:
    """Same bucket on every rank, own utterances on each; batches hold up to max_frames."""

    def __init__(self, rank, world, num_utts=2600, max_frames=1600, seed=11):
        rng = random.Random(seed)
        durations = [int(min(400, max(80, rng.gauss(200, 70)))) for _ in range(num_utts)]
        self.buckets = [[], [], [], []]
        for i, d in enumerate(durations[rank::world]):
            self.buckets[min(3, d // 100)].append((i, d))
        self.rank, self.max_frames, self.seed = rank, max_frames, seed

    def epoch(self, epoch):
        shared, own = random.Random(self.seed + epoch), random.Random(self.seed * 1000 + epoch * 10 + self.rank)
        buckets = [own.sample(b, len(b)) for b in self.buckets]
        sizes = [max(1, self.max_frames // (100 * (k + 1))) for k in range(4)]
        while True:
            k = shared.choices(range(4), weights=[2, 4, 4, 1])[0]
            for j in range(4):
                pick = (k + j) % 4
                if len(buckets[pick]) >= sizes[pick]:
                    break
            else:
                return
            yield [buckets[pick].pop() for _ in range(sizes[pick])], 100 * (pick + 1)


class Prefetcher(threading.Thread):
    def __init__(self, batches, depth=4):
        super().__init__(daemon=True, name="prefetch")
        self.batches, self.q = batches, queue.Queue(depth)
        self.conn = http.client.HTTPConnection("127.0.0.1", int(os.environ["FEATURE_PORT"]))
        self.start()

    def fetch(self, cuts, pad):
        frames = [d for _, d in cuts]
        self.conn.request("GET", "/features?seed=%d&frames=%s" % (cuts[0][0], ",".join(map(str, frames))))
        flat = torch.from_numpy(np.frombuffer(self.conn.getresponse().read(), "float32").reshape(-1, DIM).copy())
        feats = torch.zeros(len(cuts), max(pad, 100), DIM)
        for i, f in enumerate(flat.split(frames)):
            feats[i, :min(len(f), feats.size(1))] = f[:feats.size(1)]
        return feats

    def run(self):
        try:
            for cuts, pad in self.batches:
                self.q.put(self.fetch(cuts, pad))
            self.q.put(None)
        except Exception as e:
            self.q.put(e)

    def __iter__(self):
        while True:
            item = self.q.get()
            if isinstance(item, Exception):
                raise item
            if item is None:
                return
            yield item
