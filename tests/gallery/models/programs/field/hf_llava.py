import torch
from transformers import LlavaConfig, LlavaForConditionalGeneration


def make():
    config = LlavaConfig(
        text_config={"model_type": "llama", "vocab_size": 70, "hidden_size": 24,
            "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "num_key_value_heads": 1, "max_position_embeddings": 512, "pad_token_id": 0},
        vision_config={"model_type": "clip_vision_model", "hidden_size": 16,
            "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
            "image_size": 16, "patch_size": 8, "projection_dim": 16},
        image_token_index=69, image_seq_length=4,
    )
    return LlavaForConditionalGeneration(config)


def batch(rows):
    ids = torch.randint(3, 69, (rows, 14))
    ids[:, 1:5] = 69
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "pixel_values": torch.randn(rows, 3, 16, 16),
        "labels": ids.masked_fill(ids == 69, -100),
    }
