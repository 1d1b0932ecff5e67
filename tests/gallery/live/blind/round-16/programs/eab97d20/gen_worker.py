import argparse
import random
import re

import torch

from client import upload, wait_ready
from policy import TinyLM


def load_questions(seed=5, n=1200):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        a, b = rng.randint(2, 40), rng.randint(2, 28)
        out.append({"Q": "A shop sells %d boxes of %d pens. How many pens?" % (a, b),
                    "A": "%s boxes are sold.\n#### %s" % (a, format(a * b, ","))})
    return out


def reward_correct(item, answer_ids):
    truth = float(item["A"].split("####")[-1].strip())
    text = "".join(chr(32 + t % 90) for t in answer_ids)
    nums = re.findall(r"\d+\.\d+|\d+", text)
    return 1.0 if nums and float(nums[-1]) == truth else -1.0


def reward_format(answer_ids):
    return 1.0 if sum(t % 90 in range(16, 26) for t in answer_ids) > 2 else -0.5


@torch.no_grad()
def sample(model, prompt, n, length):
    ids = torch.tensor([prompt]).repeat(n, 1)
    for _ in range(length):
        nxt = torch.multinomial(torch.softmax(model(ids)[:, -1], -1), 1)
        ids = torch.cat([ids, nxt], 1)
    return ids


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--world", type=int, default=2)
    p.add_argument("--num-pre-q", type=int, default=8)
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = TinyLM().eval()
    questions = load_questions()
    order = random.Random(31)
    wait_ready()
    it = 0
    while True:
        batches = []
        for item in order.sample(questions, args.world):
            prompt = [ord(c) % 256 for c in item["Q"]][:48]
            prompt = [32] * (48 - len(prompt)) + prompt
            tokens = sample(model, prompt, args.num_pre_q, 24)
            answers = tokens[:, 48:].tolist()
            rewards = torch.tensor([reward_correct(item, a) + reward_format(a) for a in answers])
            batches.append({"tokens": tokens, "plen": 48, "rewards": rewards})
        upload(batches)
        it += 1
        if it % 10 == 0:
            print("generated", it, "groups, mean reward", float(rewards.mean()), flush=True)


if __name__ == "__main__":
    main()
