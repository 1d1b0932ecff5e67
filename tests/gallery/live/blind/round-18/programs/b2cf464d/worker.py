import datetime
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from corpus import Shard


class TinyLM(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.emb = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.head(h)


def join(rank, world, port):
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world,
        timeout=datetime.timedelta(hours=2))


def run_stage(cfg, stage, rank, world, port, state):
    shard = Shard(rank, stage, cfg.vocab)
    join(rank, world, port)
    model = TinyLM(cfg.vocab, cfg.width)
    if state is not None:
        model.load_state_dict(state)
    ddp = DDP(model)
    opt = torch.optim.AdamW(ddp.parameters(), lr=stage.lr)
    begin = time.time()
    for step in range(stage.steps):
        tok = shard.batch(cfg.batch)
        logits = ddp(tok[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, cfg.vocab), tok[:, 1:].reshape(-1))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"[{stage.name}] step {step} loss {loss.item():.3f} {(time.time() - begin) / (step + 1) * 1e3:.0f} ms/step", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return {k: v.detach().clone() for k, v in model.state_dict().items()}, loss.item()


def main(rank, world, cfg, conn):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    state = None
    conn.send({"rank": rank, "pid": os.getpid()})
    while True:
        msg = conn.recv()
        if msg is None:
            break
        stage, port = msg
        state, loss = run_stage(cfg, stage, rank, world, port, state)
        conn.send({"rank": rank, "stage": stage.name, "loss": loss, "docs": stage.docs_per_shard[rank]})
