import time

import torch
import torch.distributed as dist
from accelerate import Accelerator, debug_launcher
from torch.nn.utils import parameters_to_vector

from replay import STATE, Replay
from sampler import Flow, log_reward, rollout

PER_RANK = 24
OFFLINE_SHARDS, SHARD_SIZE = 8, 7_000


def training_function():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    rank, world = accelerator.process_index, accelerator.num_processes
    manager = world - 1
    torch.manual_seed(0)
    flow = Flow()
    optim = torch.optim.Adam(flow.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(rank)
    replay = Replay(capacity=60_000) if rank == manager else None
    shards = 0
    mark = time.time()

    for step in range(1, 100_000):
        states, reward = rollout(flow, PER_RANK, gen)
        payload = torch.cat([states, reward.unsqueeze(1)], 1)
        inbox = [torch.empty_like(payload) for _ in range(world)] if rank == manager else None
        dist.gather(payload, inbox, dst=manager)
        outbox = None
        if rank == manager:
            if step % 10 == 0 and shards < OFFLINE_SHARDS:
                offline = torch.randn(SHARD_SIZE, STATE, generator=gen)
                replay.extend(offline, log_reward(offline))
                shards += 1
            for piece in inbox:
                replay.add_trajectories(piece[:, :STATE], piece[:, STATE])
            outbox = [replay.sample(PER_RANK) for _ in range(world)]
        replayed = torch.empty(PER_RANK, STATE)
        dist.scatter(replayed, outbox, src=manager)

        loss = flow.loss(torch.cat([states, replayed]))
        optim.zero_grad()
        loss.backward()
        grad = parameters_to_vector([p.grad for p in flow.parameters()])
        dist.all_reduce(grad)
        offset = 0
        for p in flow.parameters():
            p.grad.copy_(grad[offset : offset + p.numel()].view_as(p) / world)
            offset += p.numel()
        optim.step()
        if rank == 0 and step % 4 == 0:
            print(f"step {step} loss {loss.item():.4f} {4 / (time.time() - mark):.2f} steps/s", flush=True)
            mark = time.time()


if __name__ == "__main__":
    debug_launcher(training_function, num_processes=3)
