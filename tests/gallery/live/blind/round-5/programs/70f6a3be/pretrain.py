import argparse, time, datetime
import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs
from env_utils import describe

SIZES = {"tiny": (64, 2), "small": (256, 4)}


def build(name):
    d, n = SIZES[name]
    return torch.nn.Sequential(*[torch.nn.Linear(d, d) for _ in range(n)]), d


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="tiny")
    ap.add_argument("--steps", type=int, default=100)
    a = ap.parse_args()
    print("environment:", describe(), flush=True)
    acc = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(backend="gloo", timeout=datetime.timedelta(hours=3))])
    net, d = build(a.model)
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    net, opt = acc.prepare(net, opt)
    for s in range(a.steps):
        x = torch.randn(8, d)
        loss = (net(x) - x).pow(2).mean()
        acc.backward(loss); opt.step(); opt.zero_grad()
        if s % 20 == 0:
            acc.print(f"step {s} loss {loss.item():.4f}", flush=True)
        time.sleep(0.2)


main()
