import time
from datetime import timedelta

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.utils import set_seed

from corpus import ShardStore, stage_in

BLOCK = 24


class CharGRU(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.emb = nn.Embedding(128, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, 128)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def windows(ids, batch, gen):
    for _ in range(20):
        at = torch.randint(0, len(ids) - BLOCK - 1, (batch,), generator=gen)
        yield torch.stack([ids[i:i + BLOCK + 1] for i in at.tolist()])


def main():
    acc = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=60))])
    set_seed(11)
    with acc.local_main_process_first():
        root = stage_in()
    store = ShardStore(root)
    model = CharGRU()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, opt = acc.prepare(model, opt)
    gen = torch.Generator().manual_seed(acc.process_index)
    mine = store.names[acc.process_index::acc.num_processes]

    step = 0
    for epoch in range(300):
        for name in mine:
            ids = store.tokens(name)
            for batch in windows(ids, 8, gen):
                logits = model(batch[:, :-1])
                loss = F.cross_entropy(logits.reshape(-1, 128), batch[:, 1:].reshape(-1))
                acc.backward(loss)
                acc.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                opt.zero_grad()
                time.sleep(0.12)
                step += 1
                if step % 10 == 0:
                    mean = acc.reduce(loss.detach(), reduction="mean").item()
                    acc.print(f"epoch {epoch} step {step} loss {mean:.3f}", flush=True)
    acc.end_training()


if __name__ == "__main__":
    main()
