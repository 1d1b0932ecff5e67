import multiprocessing as mp


def _scan(docs, seen, n, queue):
    for k, doc in enumerate(docs):
        hits = [i for i in range(len(doc) - n + 1) if tuple(doc[i:i + n]) in seen]
        queue.put((k, len(doc), hits))


class OverlapScanner:
    """Finds n-grams of held-out documents that also occur in the training set."""

    def __init__(self, train_docs, n=4):
        self.n = n
        self.seen = {tuple(d[i:i + n]) for d in train_docs for i in range(len(d) - n + 1)}
        self.ctx = mp.get_context("fork")

    def scan(self, docs):
        queue = self.ctx.Queue()
        proc = self.ctx.Process(target=_scan, args=(docs, self.seen, self.n, queue))
        proc.start()
        proc.join()
        reports = [queue.get() for _ in docs]
        tokens = sum(size for _, size, _ in reports)
        covered = sum(len(hits) for _, _, hits in reports)
        return covered, tokens
