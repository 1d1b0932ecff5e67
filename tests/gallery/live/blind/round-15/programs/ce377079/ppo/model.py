import torch
from torch import nn

VOCAB = 96
PAD, BOS = 0, 1


class PolicyWithValue(nn.Module):
    def __init__(self, dim=96, layers=2, heads=4, max_len=48):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim)
        self.pos = nn.Embedding(max_len, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.lm_head = nn.Linear(dim, VOCAB)
        self.v_head = nn.Linear(dim, 1)

    def forward(self, ids):
        n = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        x = self.tok(ids) + self.pos(torch.arange(n))
        x = self.body(x, mask=mask, is_causal=True)
        return self.lm_head(x), self.v_head(x).squeeze(-1)


@torch.no_grad()
def generate(model, prompts, new_tokens):
    ids = prompts
    for _ in range(new_tokens):
        logits, _ = model(ids)
        nxt = torch.multinomial(torch.softmax(logits[:, -1], -1), 1)
        ids = torch.cat([ids, nxt], 1)
    return ids
