import math

import torch
from torch.utils.data import Dataset

RATE = 16000


def synth(label, seed, seconds=3.0):
    gen = torch.Generator().manual_seed(seed)
    t = torch.arange(int(RATE * seconds)) / RATE
    base = 180.0 + 90.0 * label
    wave = torch.sin(2 * math.pi * base * t) + 0.4 * torch.sin(4 * math.pi * base * t)
    return wave + 0.6 * torch.randn(t.shape, generator=gen)


def normalise(wave):
    wave = wave - wave.mean()
    return wave / wave.abs().max().clamp_min(1e-4)


def features(wave, n_fft=512, hop=480):
    spec = torch.stft(wave, n_fft, hop, window=torch.hann_window(n_fft), return_complex=True).abs()
    return spec[:64].log1p()


class ShortClips(Dataset):
    """Pre-computed features for training."""

    def __init__(self, size, seed):
        self.labels = [i % 8 for i in range(size)]
        self.feats = [features(normalise(synth(y, seed + i, 0.8))) for i, y in enumerate(self.labels)]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.feats[i], self.labels[i]


class FullClips(Dataset):
    """Full-length validation clips, decoded on the fly."""

    def __init__(self, size, seed):
        self.size, self.seed = size, seed

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        label = i % 8
        return features(normalise(synth(label, self.seed + i))), label
