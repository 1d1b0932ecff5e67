import argparse
import copy
import logging
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from net import CharLM
from server import ResponseGenerator

ALPHABET = "abcdefghijklmnopqrstuvwxyz .,;:!?'-0123456789ABCDEFGHIJKLMNOPQRS"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_text(seed, n=60000):
    g = torch.Generator().manual_seed(seed)
    table = torch.randint(0, 64, (64, 3), generator=g)
    choice = torch.randint(0, 3, (n,), generator=g).tolist()
    out, c = [], 0
    for k in choice:
        c = int(table[c, k])
        out.append(c)
    return torch.tensor(out)


def run(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.nprocs)
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [{rank}] %(message)s")
    log = logging.getLogger("train")

    text = make_text(5)
    torch.manual_seed(0)
    model = CharLM()
    ddp = DDP(model)
    opt = torch.optim.AdamW(ddp.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)

    responder = None
    if rank == 0:
        responder = ResponseGenerator(lambda: copy.deepcopy(model).eval())

    t0 = time.time()
    for step in range(1, args.steps + 1):
        start = torch.randint(0, len(text) - 33, (8,), generator=gen)
        batch = torch.stack([text[s:s + 33] for s in start])
        logits = ddp(batch[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        opt.step()
        if rank == 0 and step % 10 == 0:
            log.info("step %d loss %.3f %.0f ms/step", step, loss.item(), 100 * (time.time() - t0))
            t0 = time.time()
        if rank == 0 and step % args.preview_every == 0:
            ids = responder.generate([1, 2, 3])
            log.info("preview: %s", "".join(ALPHABET[i] for i in ids))

    if responder is not None:
        responder.stop()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nprocs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--preview-every", type=int, default=200)
    args = parser.parse_args()
    mp.spawn(run, args=(args, free_port()), nprocs=args.nprocs)
