import torch
import torch.nn.functional as F


def train_one_epoch(model, loader, optimizer, epoch, rank, log_interval=20):
    model.train()
    running = 0.0
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
        if rank == 0 and (i + 1) % log_interval == 0:
            print(f"[epoch {epoch}] {i + 1}/{len(loader)} loss {running / (i + 1):.4f}", flush=True)
    return running / len(loader)


@torch.no_grad()
def evaluate(model, loader, metrics):
    model.eval()
    metrics.reset()
    for x, y in loader:
        metrics.update(model(x), y)
    return {k: v.item() for k, v in metrics.compute().items()}
