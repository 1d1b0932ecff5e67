import argparse
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from aux_tracker import tracker
from blocks import StageModule


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--stages", type=int, default=3)
    p.add_argument("--microbatches", type=int, default=4)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--first-k-dense", type=int, default=2)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--vocab", type=int, default=128)
    p.add_argument("--seq-len", type=int, default=16)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--log-every", type=int, default=10)
    p.add_argument("--aux-log-every", type=int, default=50)
    p.add_argument("--steps", type=int, default=100000)
    return p.parse_args()


def loss_fn(logits, target):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def batches(args):
    gen = torch.Generator().manual_seed(11)
    while True:
        tokens = torch.randint(0, args.vocab, (args.batch_size, args.seq_len + 1), generator=gen)
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def example_shapes(args, stage):
    shape = (args.batch_size // args.microbatches, args.seq_len)
    ids = torch.empty(shape, dtype=torch.long, device="meta")
    hidden = torch.empty((*shape, args.dim), device="meta", requires_grad=True)
    logits = torch.empty((*shape, args.vocab), device="meta", requires_grad=True)
    return (ids if stage == 0 else hidden), (logits if stage == args.stages - 1 else hidden)


def log_aux(step, args, group, is_last):
    tracker.reduce_across_stages(group)
    if is_last:
        report = tracker.averages(args.aux_log_every * args.microbatches)
        print(f"step {step} aux " + " ".join(f"{k}={v:.4f}" for k, v in report.items()), flush=True)
    tracker.clear()


def worker(rank, args, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=args.stages, timeout=timedelta(minutes=40))
    mesh = init_device_mesh("cpu", (args.stages,), mesh_dim_names=("pp",))
    pp_group = mesh["pp"].get_group()
    torch.manual_seed(rank)
    module = StageModule(args, rank)
    stage_input, stage_output = example_shapes(args, rank)
    stage = PipelineStage(module, rank, args.stages, torch.device("cpu"), input_args=stage_input,
                          output_args=stage_output, group=pp_group)
    schedule = Schedule1F1B(stage, n_microbatches=args.microbatches, loss_fn=loss_fn)
    optim = torch.optim.AdamW(module.parameters(), lr=1e-3)
    is_first, is_last = rank == 0, rank == args.stages - 1

    for step, (inputs, targets) in enumerate(batches(args), start=1):
        optim.zero_grad()
        losses = []
        if is_first:
            schedule.step(inputs)
        elif is_last:
            schedule.step(target=targets, losses=losses)
        else:
            schedule.step()
        optim.step()
        time.sleep(0.15)
        if is_last and step % args.log_every == 0:
            print(f"step {step} lm_loss {torch.stack(losses).mean().item():.4f}", flush=True)
        if step % args.aux_log_every == 0:
            log_aux(step, args, pp_group, is_last)
        if step >= args.steps:
            break
    dist.destroy_process_group()


def main():
    args = parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args, port), nprocs=args.stages)


if __name__ == "__main__":
    main()
