import os
import time
from datetime import timedelta

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs

from rollout import RolloutBuffer, pad, scatter

VOCAB, DIM = 200, 64


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        layer = nn.TransformerEncoderLayer(DIM, 4, 4 * DIM, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        return self.head(self.body(self.tok(ids), mask=mask, is_causal=True))


def logprobs(logits, ids):
    return -F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")


def main():
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(backend="gloo", timeout=timedelta(hours=1))])
    torch.manual_seed(0)
    policy = Policy()
    opt = torch.optim.AdamW(policy.parameters(), lr=1e-4)
    policy, opt = acc.prepare(policy, opt)
    t0, updates = time.time(), 0
    for it in range(100000):
        samples = RolloutBuffer(prompts=6, group=4, vocab=VOCAB, seed=it).collect()
        mine = scatter(samples, acc.process_index, acc.num_processes)
        for mb in range(0, len(mine), 4):
            ids, mask, adv = pad(mine[mb:mb + 4])
            lp = logprobs(policy(ids), ids)
            ratio = (lp - lp.detach()).exp()
            loss = -(ratio * adv[:, None] * mask[:, 1:]).sum() / mask[:, 1:].sum()
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            updates += 1
        if it % 10 == 0:
            acc.print(f"iter {it} updates {updates} loss {loss.item():.4f} {(time.time() - t0) / max(updates, 1):.3f} s/update", flush=True)


if __name__ == "__main__":
    main()
