import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DataLoader

from documents import Documents
from export import Exporter
from net2d import Ranker, parallelize


@torch.no_grad()
def accuracy(model, batches):
    counts = torch.zeros(2)
    for ids, offsets, y in batches:
        counts += torch.tensor([((model(ids, offsets).squeeze(-1) > 0) == (y > 0.5)).sum().item(), len(y)])
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def run(rank, args, port, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(args.dp * args.tp))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (args.dp, args.tp), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(9)
    model = parallelize(Ranker(), mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    replica = mesh["dp"].get_local_rank()
    loader = iter(DataLoader(Documents(replica, args.batch), batch_size=None))
    held_out = [b for b, _ in zip(Documents(100 + replica, args.batch), range(20))]
    exporter = Exporter(folder)

    mark = time.time()
    for step in range(1, args.steps + 1):
        ids, offsets, y = next(loader)
        loss = F.binary_cross_entropy_with_logits(model(ids, offsets).squeeze(-1), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} words {len(ids)} {time.time() - mark:.2f}s", flush=True)
            mark = time.time()
        if step % 120 == 0:
            acc = accuracy(model, held_out)
            exporter.export(step, model)
            if rank == 0:
                print(f"step {step} accuracy {acc:.3f} exported to {folder}", flush=True)
