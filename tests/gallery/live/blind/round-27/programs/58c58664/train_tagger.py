import time
from datetime import timedelta

import torch
import torch.nn.functional as F
from accelerate import Accelerator, DataLoaderConfiguration, InitProcessGroupKwargs
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

from corpus import NUM_CLASSES, ShardedCorpus, make_index
from model import Tagger


def probe_batches(count=320):
    g = torch.Generator().manual_seed(4)
    labels = torch.randint(0, NUM_CLASSES, (count,), generator=g)
    frames = torch.randn(count, 64, 16, generator=g)
    frames[torch.arange(count), :, labels] += 0.7
    return TensorDataset(frames, labels)


def update(accelerator, model, optimizer, frames, labels):
    loss = F.cross_entropy(model(frames), labels)
    time.sleep(0.1)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def main():
    set_seed(21)
    accelerator = Accelerator(
        cpu=True,
        dataloader_config=DataLoaderConfiguration(dispatch_batches=False, split_batches=False),
        kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=30))],
    )
    warmup = DataLoader(probe_batches(), batch_size=4, shuffle=True)
    stream = DataLoader(ShardedCorpus(make_index()), batch_size=4, num_workers=1, prefetch_factor=2)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model, optimizer, warmup, stream = accelerator.prepare(model, optimizer, warmup, stream)
    began, step = time.time(), 0
    for frames, labels in warmup:
        loss = update(accelerator, model, optimizer, frames, labels)
        step += 1
        if step % 5 == 0:
            accelerator.print(f"warmup step {step} loss {loss.item():.4f} t {time.time() - began:.1f}s", flush=True)
    for epoch in range(100):
        for batch in stream:
            loss = update(accelerator, model, optimizer, batch["frames"], batch["label"])
            step += 1
            mean = accelerator.reduce(loss, reduction="mean")
            if step % 5 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {mean.item():.4f} "
                                  f"t {time.time() - began:.1f}s", flush=True)


if __name__ == "__main__":
    main()
