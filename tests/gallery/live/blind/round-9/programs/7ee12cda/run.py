import argparse
import os
import random
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from analysis import confusion_report
from net import SetEncoder
from points import PointSets


def train(rank, world, port, args):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    ckpt_group = dist.new_group(backend="gloo")
    torch.manual_seed(0)
    model = SetEncoder()
    ddp = DDP(model)
    step_fn = torch.compile(ddp, dynamic=True, backend="aot_eager")
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = iter(DataLoader(PointSets(rank), batch_size=None, num_workers=1, prefetch_factor=4))
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn")) if rank == 0 else None
    report, saving, saved = None, None, []
    t0 = time.time()
    for step in range(1, args.steps + 1):
        x, mask, y = next(loader)
        logits = step_fn(x, mask)
        loss = F.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.3f} {(time.time() - t0) / 50 * 1e3:.0f} ms/step")
            t0 = time.time()
        if report is not None and report.done():
            print(f"  report: {report.result()}")
            report = None
        if step % args.eval_every == 0:
            preds, trues = [], []
            model.eval()
            with torch.no_grad():
                for _ in range(args.eval_batches):
                    x, mask, y = next(loader)
                    preds.append(model(x, mask).argmax(-1))
                    trues.append(y)
            model.train()
            both = torch.stack([torch.cat(preds), torch.cat(trues)])
            got = [torch.empty_like(both) for _ in range(world)] if rank == 0 else None
            dist.gather(both, got, dst=0)
            if rank == 0:
                p, t = torch.cat(got, 1).numpy()
                report = pool.submit(confusion_report, p, t, 12)
        if step % args.save_every == 0:
            if saving is not None:
                saving.result()
            path = os.path.join(args.ckpt, f"step-{step}")
            saving = dcp.async_save({"model": model.state_dict(), "step": step}, checkpoint_id=path, process_group=ckpt_group)
            saved.append(path)
            if rank == 0 and len(saved) > 3:
                shutil.rmtree(saved.pop(0), ignore_errors=True)
    if saving is not None:
        saving.result()
    if pool:
        pool.shutdown()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=2)
    p.add_argument("--ckpt", required=True)
    p.add_argument("--steps", type=int, default=1000000)
    p.add_argument("--eval-every", type=int, default=400)
    p.add_argument("--eval-batches", type=int, default=60)
    p.add_argument("--save-every", type=int, default=500)
    args = p.parse_args()
    mp.spawn(train, args=(args.nproc, random.randint(20000, 40000), args), nprocs=args.nproc)
