import torch
from transformers import LayoutLMConfig, LayoutLMForTokenClassification


def make():
    config = LayoutLMConfig(
        vocab_size=80, hidden_size=24, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=512, max_2d_position_embeddings=64,
        num_labels=5, pad_token_id=0,
    )
    return LayoutLMForTokenClassification(config)


def batch(rows, length=16):
    left = torch.randint(0, 30, (rows, length, 2))
    return {
        "input_ids": torch.randint(1, 80, (rows, length)),
        "bbox": torch.cat([left, left + torch.randint(1, 30, (rows, length, 2))], -1),
        "attention_mask": torch.ones(rows, length, dtype=torch.long),
        "labels": torch.randint(0, 5, (rows, length)),
    }
