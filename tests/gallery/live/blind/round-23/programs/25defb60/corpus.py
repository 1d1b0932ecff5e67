import numpy as np
import torch
from datasets import Dataset

from features import log_filterbank, perturb_speed

SAMPLES = 8000


def make_corpus(n_utts=192, n_classes=8, seed=13):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_utts)
    t = np.arange(SAMPLES) / 8000.0
    waves = [
        (np.sin(2 * np.pi * (200 + 90 * y) * t) + 0.4 * rng.standard_normal(SAMPLES)).astype("float32")
        for y in labels
    ]
    return Dataset.from_dict({"wave": waves, "label": labels.tolist()})


def featurize_batch(batch, round_idx):
    waves = torch.tensor(batch["wave"], dtype=torch.float32)
    if round_idx > 0:
        waves = perturb_speed(waves, 1.0 + 0.05 * round_idx)
    feats = log_filterbank(waves).mean(dim=1)
    return {"feats": feats.tolist(), "label": batch["label"]}


def featurize(corpus, round_idx, num_proc):
    return corpus.map(
        featurize_batch,
        fn_kwargs={"round_idx": round_idx},
        batched=True,
        batch_size=48,
        num_proc=num_proc,
        remove_columns=["wave"],
        desc=f"features (round {round_idx})",
    )
