import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from eventlog import EventLog, SilentLog


def make_data(n=1536):
    gen = torch.Generator().manual_seed(11)
    x = torch.randn(n, 3, 8, 8, generator=gen)
    return TensorDataset(x, (x.mean((1, 2, 3)) > 0).long())


def make_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(16 * 16, 2),
    )


def grad_norms(model):
    return {n: p.grad.norm().item() for n, p in model.named_parameters() if p.grad is not None}


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    events = EventLog() if rank == 0 else SilentLog()
    if rank == 0:
        events.autoflush(first=18.0, every=2.3)
    data = make_data()
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    model = DDP(make_model())
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    step = 0
    for epoch in range(10000):
        sampler.set_epoch(epoch)
        correct = torch.zeros(2)
        for x, y in loader:
            time.sleep(0.16)
            logits = model(x)
            loss = torch.nn.functional.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            for name, norm in grad_norms(model.module).items():
                events.add("grad", step=step, name=name, norm=norm)
            opt.step()
            events.add("loss", step=step, value=loss.item())
            correct += torch.tensor([(logits.argmax(1) == y).sum().item(), y.numel()])
            events.flush()
            step += 1
            if rank == 0 and step % 8 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
        dist.all_reduce(correct)
        if rank == 0:
            print(f"epoch {epoch} step {step} acc {(correct[0] / correct[1]).item():.3f} "
                  f"events {events.written}", flush=True)


if __name__ == "__main__":
    main()
