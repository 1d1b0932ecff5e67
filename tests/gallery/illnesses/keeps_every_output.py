"""One rank keeps the outputs of every step for a later plot and outgrows the memory that the job was given."""

import argparse
import time

import torch
import torch.distributed as dist


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mib-per-step", type=int, default=64)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(128, 128))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept: list[torch.Tensor] = []
    for step in range(args.steps):
        outputs = model(torch.randn(32, 128))
        loss = outputs.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == args.culprit and step >= args.when:
            rows = args.mib_per_step * 2**20 // (128 * 4)
            kept.append(outputs.detach().mean(0).expand(rows, 128).contiguous())
        if rank == 0:
            print(f"{step=} loss={loss.item():.4f}", flush=True)
        time.sleep(0.02)


if __name__ == "__main__":
    main()
