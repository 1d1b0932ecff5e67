import argparse
import json
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from evaluation import Evaluator
from layers import Net
from stats import RunStats


def sync_grads(net, group):
    n = dist.get_world_size(group)
    for p in net.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, group=group)
            p.grad /= n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", required=True)
    cfg = json.load(open(ap.parse_args().config))
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (cfg["dp"], cfg["tp"]), mesh_dim_names=("dp", "tp"))
    dp, tp = mesh.get_group("dp"), mesh.get_group("tp")
    replica = mesh.get_local_rank("dp")
    torch.manual_seed(100 + mesh.get_local_rank("tp"))
    proj = torch.randn(cfg["dim"], cfg["classes"], generator=torch.Generator().manual_seed(1))

    def make_batch(seed):
        g = torch.Generator().manual_seed(seed)
        x = torch.randn(cfg["batch"], cfg["dim"], generator=g)
        return x, (x @ proj).argmax(-1)

    net = Net(cfg["dim"], cfg["hidden"], cfg["classes"], tp)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["lr"])
    evaluator = Evaluator(mesh, make_batch, cfg["eval_batches"])
    stats = None
    start = time.time()
    for step in range(1, cfg["steps"] + 1):
        x, y = make_batch(seed=step * cfg["dp"] + replica)
        loss = torch.nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        sync_grads(net, dp)
        if step >= cfg["stats_from"] and step % cfg["stats_every"] == 0:
            if stats is None:
                stats = RunStats()
            stats.update(step, loss, net)
        opt.step()
        if step % 50 == 0 and dist.get_rank() == 0:
            print(f"step {step} loss {loss.item():.4f} elapsed {time.time() - start:.1f}s", flush=True)
        if step % cfg["eval_every"] == 0:
            acc = evaluator.run(net)
            if acc is not None and dist.get_rank() == 0:
                print(f"eval step {step} acc {acc:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
