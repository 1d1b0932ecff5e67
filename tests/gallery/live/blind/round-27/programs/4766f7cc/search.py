import gc
import multiprocessing as mp
import os
import socket
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from study import Study, serve_dashboard

WORLD = 3
REPORT_EVERY = 15
STEPS_PER_TRIAL = 90


class Pruned(Exception):
    pass


def make_model(params):
    layers, width = [], 20
    for _ in range(params["depth"]):
        layers += [nn.Linear(width, params["width"]), nn.ReLU(), nn.Dropout(params["dropout"])]
        width = params["width"]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def validation_loss(model, rank):
    gen = torch.Generator().manual_seed(500 + rank)
    model.eval()
    total = torch.zeros(2)
    with torch.no_grad():
        for _ in range(4 + 2 * rank):
            x = torch.randn(64, 20, generator=gen)
            total[0] += nn.functional.mse_loss(model(x).squeeze(1), x[:, 0] * x[:, 1], reduction="sum")
            total[1] += 64
            time.sleep(0.1)
    model.train()
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def objective(study, params, rank, writer, out_dir):
    torch.manual_seed(params["trial"])
    model = DDP(make_model(params))
    optimizer = torch.optim.Adam(model.parameters(), lr=params["lr"])
    gen = torch.Generator().manual_seed(rank)
    value = float("inf")
    for step in range(1, STEPS_PER_TRIAL + 1):
        x = torch.randn(64, 20, generator=gen)
        loss = nn.functional.mse_loss(model(x).squeeze(1), x[:, 0] * x[:, 1])
        time.sleep(0.06 + 0.03 * ((step + rank) % WORLD))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % REPORT_EVERY == 0:
            value = validation_loss(model.module, rank)
            verdict = [False]
            if rank == 0:
                study.report(params["trial"], step, value)
                verdict[0] = study.should_prune(params["trial"], step, value)
            dist.broadcast_object_list(verdict, src=0)
            if verdict[0]:
                raise Pruned()
    if rank == 0:
        state = {k: v.clone() for k, v in model.module.state_dict().items()}
        writer.submit(store_trial, os.path.join(out_dir, f"trial{params['trial'] % 5}.pt"), params, state)
    return value


def store_trial(path, params, state):
    time.sleep(3.0)
    torch.save({"params": params, "state": state}, path)


def worker(rank, port, out_dir):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=timedelta(minutes=30))
    study = Study(os.path.join(out_dir, "study.db")) if rank == 0 else None
    dashboard = None
    if rank == 0:
        ready = mp.get_context("spawn").Queue()
        dashboard = mp.get_context("spawn").Process(target=serve_dashboard, args=(study.path, ready), daemon=True)
        dashboard.start()
        print(f"dashboard on port {ready.get()}", flush=True)
    writer = ThreadPoolExecutor(max_workers=2, thread_name_prefix="trial-writer")
    trial = 0
    while trial < 10000:
        proposal = [study.suggest(trial) if rank == 0 else None]
        dist.broadcast_object_list(proposal, src=0)
        try:
            value = objective(study, proposal[0], rank, writer, out_dir)
            outcome = f"finished with {value:.4f}"
        except Pruned:
            outcome = "pruned"
        if rank == 0:
            print(f"trial {trial} {outcome} {proposal[0]}", flush=True)
        gc.collect()
        dist.barrier()
        trial += 1
    writer.shutdown()
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="hpsearch_") as out_dir:
        ctx = mp.get_context("spawn")
        procs = [ctx.Process(target=worker, args=(r, port, out_dir), name=f"rank{r}") for r in range(WORLD)]
        for p in procs:
            p.start()
        for p in procs:
            p.join()


if __name__ == "__main__":
    main()
