import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from exports import ExportDir
from net import ConvNet, Images


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--epochs", type=int, default=500)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--export-every", type=int, default=200)
    p.add_argument("--keep", type=int, default=3)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    exporter, evaluator = 0, world - 1

    torch.manual_seed(0)
    net = ConvNet()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    train_set = Images(4096, seed=1)
    sampler = DistributedSampler(train_set, shuffle=True)
    loader = DataLoader(train_set, batch_size=args.batch, sampler=sampler, drop_last=True)
    exports = ExportDir(args.out, args.keep)
    if rank == evaluator:
        eval_net, eval_loader = ConvNet(), DataLoader(Images(64, seed=2), batch_size=32)

    step, mark = 0, time.time()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            step += 1
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 5 == 0 and rank == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} {time.time() - mark:.2f}s", flush=True)
                mark = time.time()
            if step % args.export_every == 0:
                if rank == exporter:
                    exports.publish(step, net.state_dict())
                if rank == evaluator:
                    eval_net.load_state_dict(exports.fetch(step))
                    print(f"step {step} accuracy {evaluate(eval_net, eval_loader):.3f}", flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
