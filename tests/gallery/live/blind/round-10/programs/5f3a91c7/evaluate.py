import torch
import torch.distributed as dist

from data import BOS, EOS, decode, encode


@torch.no_grad()
def generate(model, prompt, max_new_tokens, generator, temperature=0.8):
    ids = torch.tensor([[BOS] + encode(prompt)])
    out = []
    for _ in range(max_new_tokens):
        logits = model(ids[:, -128:])[:, -1] / temperature
        nxt = torch.multinomial(logits.softmax(-1), 1, generator=generator)
        if nxt.item() == EOS:
            break
        out.append(nxt.item())
        ids = torch.cat([ids, nxt], 1)
    return decode(out)


def run_generation_eval(model, records, rank, world, step, max_new_tokens=64):
    model.eval()
    gen = torch.Generator().manual_seed(step * 131 + rank)
    stats = torch.zeros(3)
    for i in range(rank, len(records), world):
        prompt, answer = records[i]
        text = generate(model, prompt, max_new_tokens, gen)
        stats += torch.tensor([float(text.strip() == answer.strip()), float(len(text)), 1.0])
    dist.all_reduce(stats)
    model.train()
    return {"exact_match": (stats[0] / stats[2]).item(), "gen_len": (stats[1] / stats[2]).item()}
