import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from runlog import RunLog


class Acoustic(nn.Module):
    def __init__(self, phones=70, dim=96, mels=40, depth=4):
        super().__init__()
        self.emb = nn.Embedding(phones, dim)
        self.convs = nn.ModuleList(nn.Conv1d(dim, dim, 5, padding=2) for _ in range(depth))
        self.mel = nn.Linear(dim, mels)
        self.dur = nn.Linear(dim, 1)

    def forward(self, ids):
        h = self.emb(ids).transpose(1, 2)
        for c in self.convs:
            h = h + F.relu(c(h))
        h = h.transpose(1, 2)
        return self.mel(h), self.dur(h).squeeze(-1)


def layer_norms(model):
    return {f"gnorm/{n}": p.grad.norm().item() for n, p in model.named_parameters()}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=2))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(Acoustic())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    log = RunLog(tempfile.mkdtemp(prefix="tts-")) if rank == world - 1 else None
    g = torch.Generator().manual_seed(rank)
    t0 = time.time()
    for step in range(1, 200001):
        ids = torch.randint(0, 70, (8, 60), generator=g)
        mel_t = torch.sin(ids[..., None] * torch.arange(1, 41) / 35.0)
        mel, dur = model(ids)
        l_mel, l_dur = F.l1_loss(mel, mel_t), F.mse_loss(dur, (ids % 7).float())
        (l_mel + 0.1 * l_dur).backward()
        opt.step()
        if log is not None:
            log.log(step, mel=l_mel.item(), dur=l_dur.item(), **layer_norms(model.module))
            s = log.summary()
            if step % 10 == 0:
                print(f"step {step} mel {s['mel']:.4f} dur {s['dur']:.4f} {step / (time.time() - t0):.1f} it/s", flush=True)
        opt.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
