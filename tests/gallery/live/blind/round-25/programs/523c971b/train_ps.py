import argparse
import os
import time

import torch
import torch.nn.functional as F
from torch.distributed import rpc

from model import Tagger, batches
from server import BatchedParameterServer


def train(ps_rref, rank, updates):
    torch.set_num_threads(1)
    name = rpc.get_worker_info().name
    model = Tagger()
    model.load_state_dict(rpc.rpc_sync("ps", BatchedParameterServer.pull, args=(ps_rref,)))
    data = batches(seed=rank)
    for step in range(updates):
        x, y = next(data)
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        grads = torch.autograd.grad(loss, list(model.parameters()))
        time.sleep(0.12 + 0.03 * (rank % 2))
        weights = rpc.rpc_sync("ps", BatchedParameterServer.push_and_pull, args=(ps_rref, name, grads))
        model.load_state_dict(weights)
        if step % 20 == 0:
            print(f"[{name}] step {step} loss {loss.item():.4f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=500)
    args = ap.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=16, rpc_timeout=3600)
    name = "ps" if rank == 0 else f"trainer{rank}"
    rpc.init_rpc(name, rank=rank, world_size=world, rpc_backend_options=options)
    if rank == 0:
        ps_rref = rpc.RRef(BatchedParameterServer(world - 1))
        jobs = [rpc.rpc_async(f"trainer{r}", train, args=(ps_rref, r, args.updates)) for r in range(1, world)]
        torch.futures.wait_all(jobs)
        print("training finished", flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    main()
