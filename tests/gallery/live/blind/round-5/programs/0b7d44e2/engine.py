import math, sys, time
import torch


def train_one_epoch(model, data, opt, writer, epoch, rank):
    model.train()
    for i, (img, target) in enumerate(data):
        out = model(img)
        loss = torch.nn.functional.cross_entropy(out, target)
        value = loss.item()
        if not math.isfinite(value):
            print("Loss is {}, stopping training".format(value), flush=True)
            sys.exit(1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        writer.add(epoch=epoch, it=i, loss=value)
        time.sleep(0.12)
    if rank == 0:
        print(f"Epoch: [{epoch}] loss {value:.4f}", flush=True)
