from transformers import ModernBertConfig, ModernBertForMaskedLM


def make():
    config = ModernBertConfig(
        vocab_size=90, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
        num_attention_heads=2, max_position_embeddings=512, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=16,
        global_attn_every_n_layers=3,
    )
    return ModernBertForMaskedLM(config)

