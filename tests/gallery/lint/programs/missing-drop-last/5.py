import os

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.utils.data import DataLoader


def main(part, rows, loss_of, optimizer):
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    stage = PipelineStage(part, rank, 4, device)
    schedule = ScheduleGPipe(stage, n_microbatches=8, loss_fn=loss_of)
    for x, y in DataLoader(rows, batch_size=64):
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=y)
        optimizer.step()
