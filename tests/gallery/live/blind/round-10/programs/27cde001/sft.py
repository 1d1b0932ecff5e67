import time

import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader

from corpus import Instructions, collate
from model import NoTargets, TinyLM, token_loss

ACCUMULATE = 4
LOG_EVERY = 10
SEED = 0


def epochs(loader):
    epoch = 0
    while True:
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def main():
    torch.set_num_threads(1)
    fabric = Fabric()
    fabric.seed_everything(SEED, verbose=False)

    loader = fabric.setup_dataloaders(DataLoader(Instructions(), batch_size=4, shuffle=True, collate_fn=collate))
    model = TinyLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = fabric.setup(model, optimizer)

    skipped, running, start = 0, 0.0, time.time()
    for it, (ids, labels) in enumerate(epochs(loader), 1):
        accumulating = it % ACCUMULATE != 0
        with fabric.no_backward_sync(model, enabled=accumulating):
            logits = model(ids)
            try:
                loss = token_loss(logits, labels)
            except NoTargets:
                skipped += 1
                continue
            fabric.backward(loss / ACCUMULATE)
            running += loss.item()
        if accumulating:
            continue
        optimizer.step()
        optimizer.zero_grad()
        step = it // ACCUMULATE
        if step % LOG_EVERY == 0:
            mean = fabric.all_gather(torch.tensor(running / (ACCUMULATE * LOG_EVERY))).mean()
            running = 0.0
            fabric.print(f"step {step} loss {mean:.4f} skipped {skipped} elapsed {time.time() - start:.1f}s", flush=True)


if __name__ == "__main__":
    main()
