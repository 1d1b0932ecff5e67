import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from checkpoint import BestKeeper
from model import Tagger

STAGES = [("general", 40, 1e-3), ("domain", 4000, 2e-4)]


def sample(gen, n=4, length=24):
    ids = torch.randint(0, 300, (n, length), generator=gen)
    return ids, (ids * 7 + ids.roll(1, dims=1)) % 12


@torch.no_grad()
def evaluate(model):
    model.eval()
    gen = torch.Generator().manual_seed(999 + dist.get_rank())
    total = torch.zeros(1)
    for _ in range(3):
        ids, tags = sample(gen)
        total += F.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
    dist.all_reduce(total)
    model.train()
    return total.item() / 3 / dist.get_world_size()


def run_stage(name, steps, lr, model, best, gen):
    opt = torch.optim.AdamW(model.parameters(), lr=lr)
    for step in range(1, steps + 1):
        ids, tags = sample(gen)
        loss = F.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if dist.get_rank() == 0 and step % 10 == 0:
            print(f"[{name}] step {step} loss {loss.item():.4f}", flush=True)
        if step % 20 == 0:
            best.offer(model, evaluate(model), step)
    best.restore(model)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(1)
    model = Tagger()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    best = BestKeeper()
    gen = torch.Generator().manual_seed(dist.get_rank())
    for name, steps, lr in STAGES:
        run_stage(name, steps, lr, model, best, gen)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
