import argparse
import time

import torch
import torch.distributed as dist

from tp_layers import Decoder

EOS = 3


@torch.no_grad()
def generate(model, prompt, temperature, max_new_tokens, rng):
    ids = list(prompt)
    for _ in range(max_new_tokens):
        logits = model(torch.tensor(ids))
        if temperature == 0.0:
            nxt = int(logits.argmax())
        else:
            nxt = int(torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=rng))
        ids.append(nxt)
        time.sleep(0.005)
        if nxt == EOS:
            break
    return ids[len(prompt):]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--prompts", type=int, default=100)
    p.add_argument("--greedy-prompts", type=int, default=10)
    p.add_argument("--temperature", type=float, default=1.0)
    p.add_argument("--max-new-tokens", type=int, default=96)
    p.add_argument("--seed", type=int, default=1234)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    model = Decoder().eval()
    rng = torch.Generator().manual_seed(torch.seed() % (2**31))
    data = torch.Generator().manual_seed(args.seed)
    for i in range(args.prompts):
        prompt = torch.randint(4, 96, (8,), generator=data).tolist()
        temperature = 0.0 if i < args.greedy_prompts else args.temperature
        out = generate(model, prompt, temperature, args.max_new_tokens, rng)
        lengths = [None] * dist.get_world_size()
        dist.all_gather_object(lengths, len(out))
        if rank == 0:
            print(f"prompt {i} temperature {temperature} new tokens {lengths[0]}", flush=True)


if __name__ == "__main__":
    main()
