import datetime
import os
import threading
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from coord import agreed_step, exclusive, scratch_group


class Encoder(nn.Module):
    def __init__(self, vocab=400, width=64, classes=12):
        super().__init__()
        self.emb = nn.Embedding(vocab, width)
        layer = nn.TransformerEncoderLayer(width, 4, 128, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        return self.out(self.enc(self.emb(x)).mean(1))


class Heartbeat(threading.Thread):
    def __init__(self, store, rank):
        super().__init__(daemon=True, name="heartbeat")
        self.store, self.rank, self.step = store, rank, 0

    def run(self):
        while True:
            self.store.set(f"beat/{self.rank}", f"{self.step}")
            time.sleep(2)


def sample(gen, batch, length):
    x = torch.randint(0, 400, (batch, length), generator=gen)
    return x, (x[:, 0] + x[:, 1]) % 12


def lengths(step):
    """Long and short sequences alternate, both ranks see the same schedule."""
    return (24, 48, 32, 64)[step % 4]


def evaluate(model, rank, gen):
    hits = torch.zeros(2)
    model.eval()
    with torch.no_grad():
        for _ in range(30):
            x, y = sample(gen, 32, 32)
            hits += torch.tensor([(model(x).argmax(1) == y).sum().item(), len(y)])
    model.train()
    with scratch_group() as group:
        dist.all_reduce(hits, group=group)
    return (hits[0] / hits[1]).item()


def save(directory, model, opt, step, keep=3):
    with exclusive(os.path.join(directory, ".index.lock")):
        torch.save({"model": model.state_dict(), "opt": opt.state_dict()}, os.path.join(directory, "tmp.pt"))
        os.replace(os.path.join(directory, "tmp.pt"), os.path.join(directory, f"model_{step}.pt"))
        old = sorted((int(n.split("_")[1].split(".")[0]) for n in os.listdir(directory) if n.startswith("model_")))
        for s in old[:-keep]:
            os.unlink(os.path.join(directory, f"model_{s}.pt"))


def phase(number, store, directory, steps):
    dist.init_process_group("gloo", store=dist.PrefixStore(f"phase{number}", store), rank=int(os.environ["RANK"]),
                            world_size=int(os.environ["WORLD_SIZE"]), timeout=datetime.timedelta(minutes=30))
    rank = dist.get_rank()
    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    first = agreed_step(directory, rank) or 0
    if first:
        with exclusive(os.path.join(directory, ".index.lock")):
            state = torch.load(os.path.join(directory, f"model_{first}.pt"))
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
    ddp = DDP(model)
    gen = torch.Generator().manual_seed(first + rank)
    start = time.time()
    for step in range(first, first + steps):
        x, y = sample(gen, 16, lengths(step))
        loss = F.cross_entropy(ddp(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        beat.step = step
        if step % 50 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.3f} {(time.time() - start) / (step - first + 1) * 1e3:.0f} ms/step", flush=True)
    acc = evaluate(model, rank, gen)
    if rank == 0:
        save(directory, model, opt, first + steps)
        print(f"phase up to {first + steps}: accuracy {acc:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    host, port = "127.0.0.1", int(os.environ["MASTER_PORT"]) + 1
    store = dist.TCPStore(host, port, world, rank == 0)
    beat = Heartbeat(dist.TCPStore(host, port, world, False), rank)
    beat.start()
    for number in range(200):
        phase(number, store, os.environ["STATE_DIR"], 400)
