import json
import os
import socket
import tempfile

import numpy as np
import torch.multiprocessing as mp

from worker import run


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def collect(results, out_dir):
    log = open(os.path.join(out_dir, "metrics.jsonl"), "w")
    while True:
        kind, rank, payload = results.get()
        if kind == "metric":
            log.write(json.dumps({"rank": rank, **payload}) + "\n")
            log.flush()
            if rank == 0:
                print(f"epoch {payload['epoch']} loss {payload['loss']:.3f} {payload['sec']:.1f}s", flush=True)
        elif kind == "preds":
            np.savez(os.path.join(out_dir, payload.pop("file")), **payload)
        elif kind == "finished":
            break
    log.close()


if __name__ == "__main__":
    world, epochs = 3, 9
    out_dir = tempfile.mkdtemp(prefix="exp-")
    results = mp.get_context("spawn").Queue()
    ctx = mp.spawn(run, args=(world, free_port(), results, epochs), nprocs=world, join=False)
    collect(results, out_dir)
    while not ctx.join():
        pass
    print(f"all results in {out_dir}")
