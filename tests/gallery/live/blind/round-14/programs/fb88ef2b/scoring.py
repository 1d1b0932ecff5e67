import multiprocessing

ctx = multiprocessing.get_context("fork")


def _overlap(hyp, ref, n):
    grams = lambda s: {tuple(s[i : i + n]) for i in range(len(s) - n + 1)}
    h, r = grams(hyp.split()), grams(ref.split())
    return len(h & r) / max(1, len(h))


def _score(pairs, queue):
    rows = []
    for hyp, ref in pairs:
        rows.append({"hyp": hyp, "ref": ref, "p1": _overlap(hyp, ref, 1), "p2": _overlap(hyp, ref, 2)})
    queue.put(rows)


def score_in_background(pairs):
    """Scores in a process of its own, which keeps the allocator of the trainer clean."""
    queue = ctx.Queue()
    worker = ctx.Process(target=_score, args=(pairs, queue), name="scorer")
    worker.start()
    worker.join()
    return queue.get()
