import torch
from transformers import VideoMAEConfig, VideoMAEForVideoClassification


def make():
    config = VideoMAEConfig(
        image_size=16, patch_size=8, num_frames=4, tubelet_size=2, hidden_size=24,
        num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, num_labels=5,
    )
    return VideoMAEForVideoClassification(config)


def clips(rows):
    return {
        "pixel_values": torch.randn(rows, 4, 3, 16, 16),
        "labels": torch.randint(0, 5, (rows,)),
    }
