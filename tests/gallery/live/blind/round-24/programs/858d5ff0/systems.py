import numpy as np
import torch

PROPERTIES = {
    "water_64": ("energy", "force", "virial"),
    "water_128": ("energy", "force", "virial"),
    "ice_ih": ("energy", "force", "virial"),
    "water_slab": ("energy", "force"),
    "water_256": ("energy", "force", "virial"),
}


def load_system(name, frames=24):
    rng = np.random.default_rng(sum(map(ord, name)))
    coords = rng.normal(size=(frames, 30)).astype("float32")
    labels = {}
    if "energy" in PROPERTIES[name]:
        labels["energy"] = np.square(coords).mean(1, keepdims=True)
    if "force" in PROPERTIES[name]:
        labels["force"] = -2.0 * coords / coords.shape[1]
    if "virial" in PROPERTIES[name]:
        labels["virial"] = np.stack([coords[:, i::9].sum(1) for i in range(9)], 1)
    return torch.from_numpy(coords), {k: torch.from_numpy(v) for k, v in labels.items()}


def train_frames(gen, batch=16):
    coords = torch.randn(batch, 30, generator=gen)
    return coords, coords.pow(2).mean(1, keepdim=True)
