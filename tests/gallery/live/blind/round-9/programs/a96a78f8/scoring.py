import multiprocessing as mp
import os
import queue


def edit_distance(a, b):
    prev = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        cur = [i]
        for j, y in enumerate(b, 1):
            cur.append(min(prev[j] + 1, cur[-1] + 1, prev[j - 1] + (x != y)))
        prev = cur
    return prev[-1]


def _score_loop(inbox, outbox, detail):
    os.nice(5)
    while True:
        job = inbox.get()
        if job is None:
            return
        step, hyps, refs = job
        rows = [
            {"step": step, "n": k, "dist": edit_distance(h, r), "hyp": h, "ref": r}
            for k, (h, r) in enumerate(zip(hyps, refs))
        ]
        mean = sum(r["dist"] for r in rows) / len(rows)
        outbox.put((step, mean, rows if detail else rows[:8]))


class Scorer:
    """Edit distance of the greedy continuations, computed next to the training loop."""

    def __init__(self, detail=False):
        ctx = mp.get_context("spawn")
        self.inbox, self.outbox = ctx.Queue(), ctx.Queue()
        self.proc = ctx.Process(target=_score_loop, args=(self.inbox, self.outbox, detail), daemon=True)
        self.proc.start()
        self.history = []

    def submit(self, step, hyps, refs):
        self.inbox.put((step, hyps, refs))

    def poll(self):
        fresh = []
        while True:
            try:
                fresh.append(self.outbox.get_nowait())
            except queue.Empty:
                break
        self.history += fresh
        return [(s, m) for s, m, _ in fresh]

    def finish(self):
        self.inbox.put(None)
        self.proc.join()
        self.poll()
        return self.history
