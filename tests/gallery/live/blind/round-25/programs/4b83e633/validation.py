import json
import os
import time

import torch

STRUCTURES = {0: "lung_left", 1: "lung_right", 2: "trachea", 3: "spinal_cord", 4: "heart"}


def validation_cases(epoch, rank, n=12):
    g = torch.Generator().manual_seed(1000 + 31 * rank)
    cases = []
    for i in range(n):
        label = int(torch.randint(0, 5, (1,), generator=g))
        if epoch >= 3 and (rank, i) == (2, 7):
            label = 5
        cases.append((torch.randn(16, generator=g), label))
    return cases


@torch.no_grad()
def score_cases(model, cases):
    table = {}
    for volume, label in cases:
        pred = int(model(volume[None]).argmax())
        row = table.setdefault(STRUCTURES[label], {"n": 0, "hit": 0})
        row["n"] += 1
        row["hit"] += int(pred == label)
        time.sleep(0.05)
    return table


def validate(model, store, rank, world, epoch, outdir):
    table = score_cases(model, validation_cases(epoch, rank))
    with open(os.path.join(outdir, f"val-{epoch}-{rank}.json"), "w") as f:
        json.dump(table, f)
    store.set(f"val/{epoch}/{rank}", "ready")
    if rank == 0:
        store.wait([f"val/{epoch}/{r}" for r in range(world)])
        hits = total = 0
        for r in range(world):
            with open(os.path.join(outdir, f"val-{epoch}-{r}.json")) as f:
                part = json.load(f)
            hits += sum(v["hit"] for v in part.values())
            total += sum(v["n"] for v in part.values())
        store.set(f"val/{epoch}/score", f"{hits / total:.4f}")
    store.wait([f"val/{epoch}/score"])
    return float(store.get(f"val/{epoch}/score"))
