import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC


def make():
    config = Wav2Vec2Config(
        vocab_size=20, hidden_size=24, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 8),
        num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2,
        feat_extract_norm="layer", do_stable_layer_norm=True, pad_token_id=0,
        ctc_zero_infinity=True,
    )
    return Wav2Vec2ForCTC(config)


def batch(rows, length=800):
    return {
        "input_values": torch.randn(rows, length),
        "attention_mask": torch.ones(rows, length, dtype=torch.long),
        "labels": torch.randint(1, 20, (rows, 4)),
    }
