import torch
from transformers import GPT2Config, GPT2LMHeadModel

EOS = 63


def build_policy():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=64, n_positions=96, n_embd=32, n_layer=2, n_head=2,
                        bos_token_id=1, eos_token_id=EOS, pad_token_id=0)
    return GPT2LMHeadModel(config)


def completions(tokens, prompt_len):
    out = []
    for row in tokens[:, prompt_len:].tolist():
        out.append(row[: row.index(EOS) + 1] if EOS in row else row)
    return out
