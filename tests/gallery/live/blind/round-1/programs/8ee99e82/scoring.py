import multiprocessing as mp


def _score(pairs, out):
    """Per-pair string similarity, pure Python, kept out of the training process."""
    rows = []
    for i, (a, b) in enumerate(pairs):
        sa, sb = set(zip(a, a[1:])), set(zip(b, b[1:]))
        rows.append({"id": i, "a": a, "b": b, "dice": 2 * len(sa & sb) / max(1, len(sa) + len(sb))})
    out.put(rows)


def score_pairs(pairs):
    ctx = mp.get_context("fork")
    out = ctx.Queue()
    worker = ctx.Process(target=_score, args=(pairs, out), daemon=True)
    worker.start()
    worker.join()
    return out.get()
