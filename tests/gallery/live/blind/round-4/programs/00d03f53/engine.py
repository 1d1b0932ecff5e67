import time

import torch


def train_one_epoch(model, criterion, optimizer, loader, epoch, rank):
    model.train()
    start = time.time()
    for i, (images, target) in enumerate(loader):
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and i % 10 == 0:
            print(f"Epoch: [{epoch}][{i}/{len(loader)}]\tTime {time.time() - start:.2f}\tLoss {loss.item():.4f}")


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = total = 0
    for images, target in loader:
        pred = model(images).argmax(1)
        correct += (pred == target).sum().item()
        total += target.numel()
    return correct / total
