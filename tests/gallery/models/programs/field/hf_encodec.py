import torch
from transformers import EncodecConfig, EncodecModel


def make():
    config = EncodecConfig(
        sampling_rate=160, hidden_size=16, num_filters=8, num_residual_layers=1,
        upsampling_ratios=[4, 2], codebook_size=32, target_bandwidths=[0.1],
        num_lstm_layers=1,
    )
    return EncodecModel(config)


def audio(rows):
    return {"input_values": torch.randn(rows, 1, 160)}
