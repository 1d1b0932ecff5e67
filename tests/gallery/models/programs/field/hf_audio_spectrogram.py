import torch
from transformers import ASTConfig, ASTForAudioClassification


def make():
    config = ASTConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        patch_size=8, frequency_stride=6, time_stride=6, max_length=40, num_mel_bins=20,
        num_labels=4,
    )
    return ASTForAudioClassification(config)


def batch(rows):
    return {"input_values": torch.randn(rows, 40, 20), "labels": torch.randint(0, 4, (rows,))}
