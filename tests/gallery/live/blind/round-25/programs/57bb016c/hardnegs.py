"""Hard negatives of one mining round: local rank 0 writes them, the others read them."""
import json
import os
import time

import torch


def mine(embeddings, per_query=4):
    sims = embeddings @ embeddings.T
    sims.fill_diagonal_(-1.0)
    picks = {}
    for q, row in enumerate(sims):
        keep = (row > row.mean()).nonzero().flatten().tolist()
        keep.sort(key=lambda j: -row[j].item())
        picks[q] = [keep[k] for k in range(per_query)]
    return picks


def round_file(shared, round_no):
    return os.path.join(shared, f"negatives-{round_no:03d}.json")


def write_round(shared, round_no, embeddings):
    picks = mine(torch.nn.functional.normalize(embeddings, dim=-1))
    tmp = round_file(shared, round_no) + ".tmp"
    with open(tmp, "w") as f:
        json.dump({str(q): n for q, n in picks.items()}, f)
    os.rename(tmp, round_file(shared, round_no))


def read_round(shared, round_no, poll=0.2):
    path = round_file(shared, round_no)
    while not os.path.exists(path):
        time.sleep(poll)
    with open(path) as f:
        return {int(q): n for q, n in json.load(f).items()}
