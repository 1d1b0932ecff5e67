import torch
import torch.nn as nn
import torch.nn.functional as F


class Policy(nn.Module):
    def __init__(self, vocab=512, dim=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.head(hidden)


@torch.no_grad()
def rollout(model, prompts, new_tokens):
    ids = prompts
    hidden = None
    inp = ids
    for _ in range(new_tokens):
        out, hidden = model.rnn(model.embed(inp), hidden)
        probs = F.softmax(model.head(out[:, -1]), dim=-1)
        nxt = torch.multinomial(probs, 1)
        ids = torch.cat([ids, nxt], dim=1)
        inp = nxt
    return ids


def policy_loss(logits, ids, advantage, prompt_len):
    logp = F.log_softmax(logits[:, :-1], dim=-1)
    taken = logp.gather(-1, ids[:, 1:, None]).squeeze(-1)[:, prompt_len - 1:]
    return -(taken.mean(1) * advantage).mean()
