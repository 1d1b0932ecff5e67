import numpy as np


def shard(rank, n=4000, seed=5):
    rng = np.random.default_rng(seed + rank)
    for i in range(n):
        hours = 1 if i % 7 else 2
        if rank == 1 and i == 380:
            hours = 900
        yield {"id": f"r{rank}-{i:05d}", "seed": int(rng.integers(1 << 30)), "hours": hours}


def decode(rec, bands=48, frames=64):
    rng = np.random.default_rng(rec["seed"])
    parts = []
    for _ in range(rec["hours"]):
        wave = rng.standard_normal(60_000)
        parts.append(np.abs(np.fft.rfft(wave.reshape(bands, -1), axis=1)))
    spec = np.concatenate(parts, axis=1)
    step = spec.shape[1] // frames
    return spec[:, : step * frames].reshape(bands, frames, step).mean(2).astype(np.float32)
