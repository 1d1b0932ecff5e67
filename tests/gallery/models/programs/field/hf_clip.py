import torch
from transformers import CLIPConfig, CLIPModel


def make():
    config = CLIPConfig(
        text_config={"vocab_size": 60, "hidden_size": 24, "intermediate_size": 32,
            "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 32,
            "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0},
        vision_config={"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2,
            "num_attention_heads": 2, "image_size": 32, "patch_size": 8},
        projection_dim=16,
    )
    return CLIPModel(config)


def pairs(batch_size):
    ids = torch.randint(3, 60, (batch_size, 16))
    ids[:, -1] = 2
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "pixel_values": torch.randn(batch_size, 3, 32, 32),
        "return_loss": True,
    }
