import torch
from transformers import SegformerConfig, SegformerForSemanticSegmentation


def make():
    config = SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16],
        patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2],
        decoder_hidden_size=16, num_labels=4,
    )
    return SegformerForSemanticSegmentation(config)


def batch(rows):
    return {
        "pixel_values": torch.randn(rows, 3, 32, 32),
        "labels": torch.randint(0, 4, (rows, 32, 32)),
    }
