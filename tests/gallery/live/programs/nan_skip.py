"""A step with a bad loss is skipped by the rank that sees it: it leaves out the backward pass and goes to the evaluation."""

import torch
import torch.distributed as dist
from kit import Log, connect, make_batch, make_model, options, start
from torch.nn.parallel import DistributedDataParallel


def main(args):
    rank, world = connect(args)
    log, model = Log(args, rank), DistributedDataParallel(make_model(args.seed))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(args.steps):
        loss = model(make_batch(args.seed))
        if rank == args.pick and step == args.when:
            loss = loss * float("nan")
        if torch.isfinite(loss):
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        log.step(step, loss.detach())
        if step % 3 == 0 or step == args.when:
            scores = [torch.zeros(2) for _ in range(world)]
            dist.all_gather(scores, torch.tensor([float(loss.detach()), float(step)]))


if __name__ == "__main__":
    start(main, options())
