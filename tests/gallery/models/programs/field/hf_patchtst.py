import torch
from transformers import PatchTSTConfig, PatchTSTForPrediction


def make():
    config = PatchTSTConfig(
        num_input_channels=3, context_length=32, prediction_length=8, patch_length=8,
        patch_stride=4, d_model=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=24,
    )
    return PatchTSTForPrediction(config)


def series(rows):
    return {"past_values": torch.randn(rows, 32, 3), "future_values": torch.randn(rows, 8, 3)}
