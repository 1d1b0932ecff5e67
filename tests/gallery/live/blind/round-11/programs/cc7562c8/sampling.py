import torch

EOS = 1


@torch.no_grad()
def complete(model, prompts, max_new_tokens=48):
    """Greedy completions; returns the token lists up to the end token."""
    ids = prompts
    done = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(max_new_tokens):
        nxt = model(ids)[:, -1].argmax(-1)
        nxt = torch.where(done, torch.full_like(nxt, EOS), nxt)
        ids = torch.cat([ids, nxt[:, None]], dim=1)
        done |= nxt == EOS
        if done.all():
            break
    return ids[:, prompts.shape[1]:]
