import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from corpus import VOCAB, stream
from moe_layer import HashRoutedMoE


class TinyMoELM(nn.Module):
    def __init__(self, dim, ep_group):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.moe = HashRoutedMoE(dim, 4, VOCAB, ep_group)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        h, _ = self.mix(self.embed(ids))
        h = h + self.moe(self.norm(h), ids)
        return self.head(h)

    def expert_parameters(self):
        return list(self.moe.experts.parameters())

    def shared_parameters(self):
        return [p for n, p in self.named_parameters() if ".experts." not in n]


def average_grads(params, group):
    size = dist.get_world_size(group)
    for p in params:
        if p.grad is None:
            continue
        p.grad.div_(size)
        dist.all_reduce(p.grad, group=group)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=45))
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("edp", "ep"))
    ep_group, edp_group = mesh["ep"].get_group(), mesh["edp"].get_group()
    replica, ep_rank = mesh.get_coordinate()

    torch.manual_seed(ep_rank)
    model = TinyMoELM(32, ep_group)
    for p in model.shared_parameters():
        dist.broadcast(p.data, src=0)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)

    started = time.time()
    for step, (source, batch) in enumerate(stream(replica, ep_rank, 4, 24), start=1):
        opt.zero_grad()
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        time.sleep(0.18)
        average_grads(model.expert_parameters(), edp_group)
        average_grads(model.shared_parameters(), dist.group.WORLD)
        nn.utils.clip_grad_norm_(model.shared_parameters(), 1.0)
        opt.step()
        if step % 10 == 0 and ep_rank == 0:
            print(f"replica {replica} step {step} source={source} loss={loss.item():.3f} "
                  f"{(time.time() - started) / step:.2f}s/it", flush=True)


if __name__ == "__main__":
    main()
