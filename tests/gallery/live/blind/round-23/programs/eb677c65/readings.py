import os
import random

import torch

FIELDS = ["temp", "load", "volt", "rpm", "wear"]


def write_site_files(folder, sites, rows=480):
    for site in range(sites):
        rnd = random.Random(site)
        with open(os.path.join(folder, f"site{site}.csv"), "w") as f:
            f.write(",".join(FIELDS) + "\n")
            for i in range(rows):
                cells = [f"{rnd.gauss(0, 1):.4f}" for _ in FIELDS]
                if site == 2 and i == 395:
                    cells[3] = "1.0.3"
                f.write(",".join(cells) + "\n")


def stream(path, batch_size):
    while True:
        rows = []
        with open(path) as f:
            next(f)
            for line in f:
                rows.append([float(c) for c in line.rstrip("\n").split(",")])
                if len(rows) == batch_size:
                    table = torch.tensor(rows)
                    yield table[:, :4], table[:, 4:]
                    rows = []
