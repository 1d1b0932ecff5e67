import argparse
import datetime
import time

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from chat_data import chat_batches
from stages import DIM, SEQ, StageModule, lm_loss


def global_grad_norm(params):
    total = torch.zeros(())
    for p in params:
        if p.grad is not None:
            total += p.grad.pow(2).sum()
    dist.all_reduce(total)
    return total.sqrt()


def clip_grads(params, max_norm):
    norm = global_grad_norm(params)
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for p in params:
        if p.grad is not None:
            p.grad.mul_(scale)
    return norm


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--microbatches", type=int, default=4)
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--steps", type=int, default=20000)
    args = ap.parse_args()

    dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=40))
    rank, n_stages = dist.get_rank(), dist.get_world_size()
    first, last = rank == 0, rank == n_stages - 1
    torch.manual_seed(17 + rank)

    module = StageModule(rank, n_stages)
    params = list(module.parameters())
    stage = PipelineStage(module, rank, n_stages, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, args.microbatches, loss_fn=lm_loss)
    opt = torch.optim.AdamW(params, lr=5e-4)

    for step, (ids, labels) in zip(range(1, args.steps + 1), chat_batches(args.batch_size)):
        opt.zero_grad(set_to_none=True)
        losses = []
        if first:
            schedule.step(ids)
        elif last:
            schedule.step(target=labels, losses=losses)
        else:
            schedule.step()
        time.sleep(0.1)

        if last:
            loss = torch.stack(losses).mean()
            if not torch.isfinite(loss):
                print(f"step {step}: loss is {loss.item()}, skipping update", flush=True)
                continue
        norm = clip_grads(params, 1.0)
        opt.step()
        if last and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} grad norm {norm.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
