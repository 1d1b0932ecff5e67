import argparse
import io
import os

import numpy as np
import webdataset as wds


def wav_features(rng, label, frames=40, mels=32):
    base = np.sin(np.linspace(0, 3 + label, frames))[:, None] * np.cos(np.linspace(0, 1 + label / 3, mels))[None]
    return (base + 0.4 * rng.standard_normal((frames, mels))).astype(np.float32)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--shards", type=int, default=9)
    ap.add_argument("--per-shard", type=int, default=120)
    args = ap.parse_args()
    rng = np.random.default_rng(3)
    for s in range(args.shards):
        with wds.TarWriter(os.path.join(args.out, f"kws-{s:04d}.tar")) as tar:
            for i in range(args.per_shard):
                label = int(rng.integers(0, 10))
                clip = wav_features(rng, label)
                buf = io.BytesIO()
                np.save(buf, clip)
                payload = buf.getvalue()
                if s == 4 and i == 275:
                    payload = payload[:2048]
                tar.write({"__key__": f"{s:04d}-{i:05d}", "feat.npy": payload, "cls": label})


if __name__ == "__main__":
    main()
