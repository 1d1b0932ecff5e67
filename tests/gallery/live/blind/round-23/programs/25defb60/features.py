"""Front end: waveform -> log filterbank features."""
import math

import torch

N_FFT = 512
HOP = 128
N_BANDS = 40


def dft_bank():
    t = torch.arange(N_FFT, dtype=torch.float32)
    bands = torch.linspace(2, N_FFT // 2 - 2, N_BANDS)
    phase = 2 * math.pi * torch.outer(t, bands) / N_FFT
    window = torch.hann_window(N_FFT).unsqueeze(1)
    return torch.cat([torch.cos(phase), torch.sin(phase)], dim=1) * window


def log_filterbank(waves):
    """waves: (batch, samples) -> (batch, frames, bands)"""
    frames = waves.unfold(1, N_FFT, HOP)
    spec = torch.matmul(frames, dft_bank())
    power = spec[..., :N_BANDS] ** 2 + spec[..., N_BANDS:] ** 2
    return torch.log(power + 1e-6)


def perturb_speed(waves, factor):
    length = waves.shape[1]
    idx = (torch.arange(length) * factor).long().remainder(length)
    return waves[:, idx]
