import torch
import torch.distributed as dist

from text import BOS, CHARS, EOS


@torch.no_grad()
def sample(model, prompts, limit, gen):
    model.eval()
    ids = torch.tensor([[BOS]] * prompts)
    done = torch.zeros(prompts, dtype=torch.bool)
    while ids.shape[1] < limit:
        p = model(ids)[:, -1].softmax(-1)
        nxt = torch.multinomial(p, 1, generator=gen)
        nxt[done] = 0
        ids = torch.cat([ids, nxt], 1)
        done |= nxt[:, 0] == EOS
        pending = torch.tensor(float((~done).sum()))
        dist.all_reduce(pending)
        if pending == 0:
            break
    model.train()
    return ["".join(CHARS[i] if i < len(CHARS) else "?" for i in row if i > 2) for row in ids.tolist()]
