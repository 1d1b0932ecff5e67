import os
import time

import torch

from fednet import Channel, SensorNet


def weighted_average(updates):
    total = sum(n for n, _ in updates)
    merged = {}
    for key, first in updates[0][1].items():
        if first.dtype.is_floating_point:
            merged[key] = sum(state[key] * (n / total) for n, state in updates)
        else:
            merged[key] = max(state[key] for _, state in updates)
    return merged


@torch.no_grad()
def holdout_accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main():
    channel = Channel()
    rounds = int(os.environ.get("ROUNDS", "50"))
    torch.manual_seed(0)
    model = SensorNet()
    gen = torch.Generator().manual_seed(77)
    x = torch.randn(256, 12, generator=gen)
    y = x[:, :4].argmax(1)
    clients = range(1, channel.world)

    for rnd in range(rounds):
        started = time.time()
        channel.publish(f"round/{rnd}/global", model.state_dict())
        updates = []
        for client in clients:
            updates.append(channel.fetch(f"round/{rnd}/update/{client}"))
        model.load_state_dict(weighted_average(updates))
        for client in clients:
            channel.drop(f"round/{rnd}/update/{client}")
        if rnd > 1:
            channel.drop(f"round/{rnd - 2}/global")
        print(f"round {rnd:3d} samples {[n for n, _ in updates]} acc {holdout_accuracy(model, x, y):.3f} "
              f"({time.time() - started:.2f}s)", flush=True)


if __name__ == "__main__":
    main()
