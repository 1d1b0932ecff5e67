"""Tensor times data parallel; ranks on the diagonal of the mesh sum a metric over the two groups in the other order."""

import torch
import torch.distributed as dist
from kit import Log, TensorBlock, connect, options, start


def summed(metric, mesh, swapped):
    groups = [mesh.get_group("tensor"), mesh.get_group("data")]
    for group in reversed(groups) if swapped else groups:
        dist.all_reduce(metric, group=group)
    return metric


def main(args):
    rank, world = connect(args)
    log, model = Log(args, rank), TensorBlock(world)
    data, tensor = model.mesh.get_coordinate()
    for step in range(args.steps):
        loss = model.train_step(torch.randn(8, 32))
        summed(loss.clone(), model.mesh, step == args.when and data == tensor)
        log.step(step, loss)


if __name__ == "__main__":
    start(main, options())
