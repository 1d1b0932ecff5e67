import os
import tempfile
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from evaluation import evaluate
from pipeline_model import StageModule


@dataclass
class Config:
    vocab: int = 600
    dim: int = 96
    depth: int = 2
    stages: int = 3
    seq: int = 40
    batch: int = 8
    microbatches: int = 4
    train_iters: int = 5000
    eval_interval: int = 40
    eval_iters: int = 4
    samples_every: int = 3


def write_samples(outputs):
    path = os.path.join(tempfile.mkdtemp(prefix="samples-"), "samples.pt")
    torch.save(torch.cat(outputs), path)
    print(f"wrote {path}", flush=True)


def main():
    cfg = Config()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    module = StageModule(rank, cfg.stages, cfg.vocab, cfg.dim, cfg.depth)
    stage = PipelineStage(module, rank, cfg.stages, torch.device("cpu"))
    schedule = ScheduleGPipe(
        stage, cfg.microbatches,
        loss_fn=lambda out, tgt: F.cross_entropy(out.flatten(0, 1), tgt.flatten()))
    opt = torch.optim.AdamW(module.parameters(), lr=2e-4)
    gen = torch.Generator().manual_seed(1)
    t0, evals = time.time(), 0
    for it in range(1, cfg.train_iters + 1):
        ids = torch.randint(0, cfg.vocab, (cfg.batch, cfg.seq), generator=gen)
        losses = []
        if rank == 0:
            schedule.step(ids)
        elif rank == cfg.stages - 1:
            schedule.step(target=ids, losses=losses)
        else:
            schedule.step()
        opt.step()
        opt.zero_grad()
        if losses and it % 10 == 0:
            print(f"iter {it} loss {torch.stack(losses).mean().item():.3f} "
                  f"{(time.time() - t0) * 100:.0f} ms/iter", flush=True)
            t0 = time.time()
        if it % cfg.eval_interval == 0:
            evals += 1
            hook = write_samples if evals % cfg.samples_every == 0 else None
            val = evaluate(schedule, cfg, rank, hook)
            if rank == 0:
                print(f"iter {it} validation loss {val:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
