import os
import time

import torch
import torch.distributed.checkpoint as dcp
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed

from prepare import ChunkCache, Heartbeat


class Slow(dcp.FileSystemWriter):
    def write_data(self, plan, planner):
        time.sleep(6.0)
        return super().write_data(plan, planner)


def run(scratch):
    acc = Accelerator(cpu=True)
    rank, world = acc.process_index, acc.num_processes
    set_seed(4)
    model = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 20))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model, opt = acc.prepare(model, opt)
    cache = ChunkCache(scratch, rank)
    beat = Heartbeat(os.path.join(scratch, f"beat-{rank}"))
    beat.start()
    saver = dist.new_group(backend="gloo")
    pending = None
    step = 0
    for index in range(4000):
        data = cache.chunk(index)
        for x in data.split(8):
            loss = F.mse_loss(model(x), x.flip(1))
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            time.sleep(0.32 if (step + rank) % world == 0 else 0.05)
            step += 1
            beat.step = step
            if step % 10 == 0 and acc.is_main_process:
                print(f"chunk {index} step {step} loss {loss.item():.4f}", flush=True)
            if step % 100 == 0:
                if pending is not None:
                    pending.result()
                state = {"model": acc.unwrap_model(model).state_dict()}
                pending = dcp.async_save(state, storage_writer=Slow(os.path.join(scratch, f"s{(step // 100) % 2}")),
                                         process_group=saver)
