import json
import os
import time

import torch


def write_manifest(run_dir, args, n_docs=240):
    """Document statistics for the run card."""
    stats = []
    for doc in range(n_docs):
        g = torch.Generator().manual_seed(doc)
        ids = torch.randint(0, 1000, (2000,), generator=g)
        stats.append({"doc": doc, "unique": int(ids.unique().numel()), "mean": float(ids.float().mean())})
        time.sleep(0.005)
    with open(os.path.join(run_dir, "manifest.json"), "w") as f:
        json.dump({"args": vars(args), "docs": stats}, f)


def batch(step, rank, batch_size=4, length=32, vocab=1000):
    g = torch.Generator().manual_seed(step * 97 + rank)
    ids = torch.randint(0, vocab, (batch_size, length + 1), generator=g)
    return ids[:, :-1], ids[:, 1:]
