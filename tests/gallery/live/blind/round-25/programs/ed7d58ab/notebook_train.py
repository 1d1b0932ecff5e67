import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator, InitProcessGroupKwargs, debug_launcher
from torch.utils.data import DataLoader, TensorDataset

from shard_cache import ShardCache


class TinyLM(nn.Module):
    def __init__(self, vocab=100, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h)


def training_function(cache_dir, epochs=1000):
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=45))])
    torch.manual_seed(0)
    model = TinyLM()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    cache = ShardCache(cache_dir)
    for epoch in range(epochs):
        shard_id = epoch * accelerator.num_processes + accelerator.process_index
        data = cache.load(shard_id)
        loader = DataLoader(TensorDataset(data), batch_size=2, shuffle=True)
        for step, (ids,) in enumerate(loader):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.15)
            if step % 5 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
        mean = accelerator.reduce(loss.detach(), "mean")
        accelerator.print(f"epoch {epoch} mean loss {mean.item():.3f}", flush=True)


if __name__ == "__main__":
    cache = tempfile.mkdtemp(prefix="lm_cache_")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    debug_launcher(training_function, args=(cache,), num_processes=2)
