import copy
import os
import signal
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ckpt import Heartbeat, Writer

requested = False


def on_usr1(signum, frame):
    global requested
    requested = True


class Net(nn.Module):
    def __init__(self, vocab=256, dim=96):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.out(self.enc(self.emb(x)))


@torch.no_grad()
def validate(net, batches, gen):
    net.eval()
    total = torch.zeros(2)
    for _ in range(batches):
        x = torch.randint(0, 256, (16, 24), generator=gen)
        total[0] += nn.functional.cross_entropy(net(x).flatten(0, 1), x.flatten())
        total[1] += 1
    dist.all_reduce(total)
    net.train()
    return (total[0] / total[1]).item()


def main():
    global requested
    torch.set_num_threads(1)
    signal.signal(signal.SIGUSR1, on_usr1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    root = os.environ["SNAP_DIR"]
    net = Net()
    model = DDP(net)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    gen = torch.Generator().manual_seed(rank)
    writer = Writer(root) if rank == 0 else None
    Heartbeat(os.path.join(root, f"alive{rank}"))
    if rank == 0:
        with open(os.path.join(root, "rank0.pid"), "w") as f:
            f.write(str(os.getpid()))
    t0 = time.time()
    for step in range(1, 10 ** 7):
        x = torch.randint(0, 256, (16, 24), generator=gen)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        flag = torch.tensor([float(requested)])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        if flag.item() or step % 250 == 0:
            requested = False
            if rank == 0:
                writer.submit(step, copy.deepcopy({"model": net.state_dict(), "opt": opt.state_dict(), "step": step}))
            dist.barrier()
        if step % 100 == 0:
            val = validate(net, 15, gen)
            if rank == 0:
                print(f"step {step} loss {loss.item():.3f} val {val:.3f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
