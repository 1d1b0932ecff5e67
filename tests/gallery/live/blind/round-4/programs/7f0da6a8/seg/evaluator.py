import time

import torch


@torch.no_grad()
def sliding_window_eval(net, volumes, budget=9.0):
    net.eval()
    t0, inter, union, n = time.time(), 0.0, 0.0, 0
    for vol, gt in volumes:
        for z in range(vol.shape[0]):
            pred = net(vol[z:z + 1, None]).sigmoid() > 0.5
            inter += (pred & gt[z:z + 1, None]).sum().item()
            union += (pred | gt[z:z + 1, None]).sum().item()
            n += 1
        if time.time() - t0 > budget:
            break
    net.train()
    return inter / max(union, 1), n, time.time() - t0
