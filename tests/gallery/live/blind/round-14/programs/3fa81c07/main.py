import argparse
import os
import time

import torch
import torch.distributed.rpc as rpc

from stages import Decoder, Encoder


def drive(args):
    enc = rpc.remote("encoder", Encoder, args=(args.vocab, args.dim))
    dec = rpc.remote("decoder", Decoder, args=(args.vocab, args.dim))
    enc.rpc_sync().attach(dec)
    gen = torch.Generator().manual_seed(0)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        # batch size warm-up: one more micro-batch every so often
        n = min(args.microbatches, 1 + step // args.ramp_every)
        tokens = torch.randint(0, args.vocab, (n, 8, 24), generator=gen)
        futs = [enc.rpc_async(timeout=0).train_microbatch(t) for t in tokens]
        loss = sum(f.wait() for f in futs) / n
        enc.rpc_sync(timeout=0).update()
        dec.rpc_sync(timeout=0).update()
        if step % 10 == 0:
            print(f"step {step} micro-batches {n} loss {loss:.4f} {(time.time() - t0) / 10 * 1000:.0f} ms/step", flush=True)
            t0 = time.time()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=100000)
    p.add_argument("--microbatches", type=int, default=8)
    p.add_argument("--ramp-every", type=int, default=50)
    p.add_argument("--vocab", type=int, default=512)
    p.add_argument("--dim", type=int, default=96)
    p.add_argument("--threads", type=int, default=4)
    args = p.parse_args()
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    name = ["driver", "encoder", "decoder"][rank]
    opts = rpc.TensorPipeRpcBackendOptions(num_worker_threads=args.threads, rpc_timeout=7200)
    rpc.init_rpc(name, rank=rank, world_size=world, rpc_backend_options=opts)
    print(f"{name} ready", flush=True)
    if rank == 0:
        drive(args)
    rpc.shutdown()


if __name__ == "__main__":
    main()
