import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration


def make():
    config = WhisperConfig(
        vocab_size=60, num_mel_bins=16, d_model=24, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32,
        decoder_ffn_dim=32, max_source_positions=40, max_target_positions=64, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    return WhisperForConditionalGeneration(config)


def batch(rows):
    return {
        "input_features": torch.randn(rows, 16, 80),
        "labels": torch.randint(3, 60, (rows, 10)),
    }
