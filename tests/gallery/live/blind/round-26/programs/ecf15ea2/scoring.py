import multiprocessing as mp

import numpy as np


def score_documents(weight, queries, results):
    rng = np.random.default_rng(0)
    documents = rng.standard_normal((512, weight.shape[1])).astype(np.float32)
    for start in range(0, len(queries), 64):
        block = queries[start:start + 64] @ weight.T @ weight
        scores = block @ documents.T
        top = np.argsort(-scores, axis=1)[:, :8]
        results.put((start, top, np.take_along_axis(scores, top, axis=1)))


class OfflineScorer:
    """Scores the query log in a process of its own, so that training memory stays small."""

    def __init__(self):
        self.ctx = mp.get_context("fork")

    def run(self, weight, queries):
        results = self.ctx.Queue()
        worker = self.ctx.Process(target=score_documents, args=(weight, queries, results))
        worker.start()
        worker.join()
        blocks = (len(queries) + 63) // 64
        found = sorted((results.get() for _ in range(blocks)), key=lambda r: r[0])
        return float(np.concatenate([f[2] for f in found]).mean())
