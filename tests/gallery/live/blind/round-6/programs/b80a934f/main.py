import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

from heartbeat import Heartbeat
from net import Seq2Seq
from translate import corpus_score


def make_pairs(n, seed):
    g = torch.Generator().manual_seed(seed)
    src = torch.randint(3, 300, (n, 14), generator=g)
    return src, src.flip(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-steps", type=int, default=1000)
    p.add_argument("--eval-every", type=int, default=200)
    p.add_argument("--bsz", type=int, default=16)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    ddp = torch.nn.parallel.DistributedDataParallel(Seq2Seq())
    opt = torch.optim.Adam(ddp.parameters(), 1e-3)
    src, tgt = make_pairs(4096, 10 + rank)
    dsrc, dtgt = make_pairs(2000, 99)
    dev = list(zip(dsrc, dtgt))
    hb = Heartbeat(f"heartbeat.{rank}.json")
    hb.start()
    for step in range(1, a.max_steps + 1):
        i = torch.randint(0, len(src), (a.bsz,))
        x, y = src[i], tgt[i]
        bos = torch.ones(a.bsz, 1, dtype=torch.long)
        out = ddp(x, torch.cat([bos, y[:, :-1]], 1))
        loss = F.cross_entropy(out.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        hb.state = {"step": step}
        time.sleep(0.12)
        if rank == 0 and step % 20 == 0:
            print(f"step {step}/{a.max_steps} loss {loss.item():.3f}", flush=True)
        if step % a.eval_every == 0:
            if rank == 0:
                s, n = corpus_score(ddp.module, dev)
                print(f"dev overlap {s:.3f} on {n} sentences", flush=True)
                torch.save(ddp.module.state_dict(), "last.pt")
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
