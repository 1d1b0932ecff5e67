from transformers import MambaConfig, MambaForCausalLM


def make():
    config = MambaConfig(
        vocab_size=70, hidden_size=16, state_size=4, num_hidden_layers=2, expand=2,
        pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )
    return MambaForCausalLM(config)

