import argparse
import multiprocessing as mp
import os
import socket
import time

import torch
import torch.distributed.rpc as rpc
import torch.nn.functional as F

import server
from events import events_of


def options():
    return rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=7200)


def run_trainer(trainer_id, trainers):
    model = server.build_model()
    for p, w in zip(model.parameters(), rpc.rpc_sync("ps", server.current_weights)):
        p.data.copy_(w)
    for n, (x, y) in enumerate(events_of(trainer_id, trainers)):
        time.sleep(0.15)
        loss = F.mse_loss(model(x), y)
        model.zero_grad()
        loss.backward()
        grads = [p.grad for p in model.parameters()]
        version, weights = rpc.rpc_sync("ps", server.push_and_pull, args=(grads,))
        for p, w in zip(model.parameters(), weights):
            p.data.copy_(w)
        if n % 10 == 0:
            print(f"trainer{trainer_id} event {n} version {version} loss {loss.item():.4f}", flush=True)
    print(f"trainer{trainer_id} pass complete", flush=True)


def role(rank, trainers, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    world = trainers + 1
    if rank == 0:
        server.start_server(trainers)
        rpc.init_rpc("ps", rank=0, world_size=world, rpc_backend_options=options())
    else:
        rpc.init_rpc(f"trainer{rank - 1}", rank=rank, world_size=world, rpc_backend_options=options())
        run_trainer(rank - 1, trainers)
    rpc.shutdown()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--trainers", type=int, default=3)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ctx = mp.get_context("spawn")
    procs = [ctx.Process(target=role, args=(r, args.trainers, port), name=f"rank{r}") for r in range(args.trainers + 1)]
    for proc in procs:
        proc.start()
    for proc in procs:
        proc.join()


if __name__ == "__main__":
    main()
