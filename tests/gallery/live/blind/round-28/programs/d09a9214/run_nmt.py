import argparse
import os
import socket
import time

import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
import torch.nn.functional as F

from model import build_model, read_corpus, token_batches
from pserver import SyncParameterServer


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--trainers", type=int, default=3)
    p.add_argument("--passes", type=int, default=4)
    p.add_argument("--max-tokens", type=int, default=64)
    p.add_argument("--lr", type=float, default=0.05)
    return p.parse_args()


def train(args, rank, ps_rref):
    model = build_model()
    corpus = read_corpus(part=rank)
    for pass_id in range(args.passes):
        started, total, n = time.time(), 0.0, 0
        for tokens in token_batches(corpus, args.max_tokens, shuffle_seed=pass_id):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0)
            model.zero_grad()
            loss.backward()
            time.sleep(0.05)
            grads = [p.grad for p in model.parameters()]
            version, weights = rpc.rpc_sync(ps_rref.owner(), SyncParameterServer.push_and_pull,
                                            args=(ps_rref, grads), timeout=86400)
            for p, w in zip(model.parameters(), weights):
                p.data.copy_(w)
            total, n = total + loss.item(), n + 1
            if n % 20 == 0:
                print(f"[trainer{rank}] pass {pass_id} batch {n} version {version} avg loss {total / n:.4f}", flush=True)
        print(f"[trainer{rank}] pass {pass_id} done, {n} batches, {time.time() - started:.1f}s", flush=True)


def run_worker(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    world = args.trainers + 1
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=16, rpc_timeout=86400)
    name = "ps" if rank == 0 else f"trainer{rank}"
    rpc.init_rpc(name, rank=rank, world_size=world, rpc_backend_options=options)
    if rank == 0:
        ps_rref = rpc.RRef(SyncParameterServer(args.trainers, args.lr))
        futures = [rpc.rpc_async(f"trainer{r}", train, args=(args, r, ps_rref), timeout=86400)
                   for r in range(1, world)]
        for fut in futures:
            fut.wait()
    rpc.shutdown()


if __name__ == "__main__":
    args = parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run_worker, args=(args, port), nprocs=args.trainers + 1)
