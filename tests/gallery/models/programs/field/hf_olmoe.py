from transformers import OlmoeConfig, OlmoeForCausalLM


def make():
    config = OlmoeConfig(
        vocab_size=70, hidden_size=32, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, num_experts=4, num_experts_per_tok=2,
        max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )
    return OlmoeForCausalLM(config)

