import argparse
import os
import time
from datetime import timedelta

import torch
import torch.nn as nn
from accelerate import Accelerator, InitProcessGroupKwargs
from torch.utils.data import DataLoader, Dataset

from feature_cache import FeatureCache


class IndexedClips(Dataset):
    def __init__(self, n=960):
        self.clips = torch.randn(n, 40, generator=torch.Generator().manual_seed(5))

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, i):
        return {"key": i, "clip": self.clips[i]}


def teacher_features(teacher, cache, keys, clips):
    feats, missing = [cache.get(k) for k in keys], []
    with torch.no_grad():
        for i, f in enumerate(feats):
            if f is None:
                feats[i] = teacher(clips[i])
                missing.append((keys[i], feats[i]))
    if missing:
        time.sleep(0.01 * len(missing))
        cache.put_many(missing)
    return torch.stack(feats)


def hottest(cache, k=32):
    time.sleep(0.2)
    return sorted(cache.hits, key=cache.hits.get, reverse=True)[:k]


def compact_cache(accelerator, cache):
    if accelerator.is_main_process:
        cache.flush_hits()
        with cache.transaction():
            cache.evict()
            accelerator.wait_for_everyone()
            return cache.renumber()
    pinned = hottest(cache)
    cache.flush_hits()
    accelerator.wait_for_everyone()
    return pinned


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--compact-every", type=int, default=50)
    args = parser.parse_args()
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=2))])
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Linear(40, 128), nn.GELU(), nn.Linear(128, 64)).eval()
    student = nn.Sequential(nn.Linear(40, 32), nn.GELU(), nn.Linear(32, 64))
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    loader = DataLoader(IndexedClips(), batch_size=8, shuffle=True)
    student, optimizer, loader = accelerator.prepare(student, optimizer, loader)
    with accelerator.main_process_first():
        cache = FeatureCache(os.environ["FEATURE_CACHE"], capacity=700)
    step = 0
    for epoch in range(args.epochs):
        for batch in loader:
            target = teacher_features(teacher, cache, batch["key"].tolist(), batch["clip"])
            loss = nn.functional.mse_loss(student(batch["clip"]), target)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.08)
            step += 1
            if step % 10 == 0:
                mean = accelerator.reduce(loss.detach(), "mean")
                accelerator.print(f"epoch {epoch} step {step} distill loss {mean.item():.4f}", flush=True)
            if step % args.compact_every == 0:
                compact_cache(accelerator, cache)
                accelerator.print(f"cache compacted at step {step}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
