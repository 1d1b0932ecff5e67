"""Writes the instruction file and the state of the earlier run."""
import argparse
import json
import os
import random

import torch

from modeling import build_model

WORDS = ("the of a model data train loss step token batch answer question write list code explain short "
         "long number sum python function return value text city river name year music film").split()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--n", type=int, default=1024)
    args = parser.parse_args()
    rng = random.Random(0)
    with open(os.path.join(args.out, "train.jsonl"), "w") as f:
        for _ in range(args.n):
            turns = []
            for role in ("user", "assistant") * 3:
                turns.append({"role": role, "content": " ".join(rng.choices(WORDS, k=rng.randint(80, 120)))})
            f.write(json.dumps({"messages": turns}) + "\n")
    torch.manual_seed(0)
    model = build_model()
    path = os.path.join(args.out, "out", "step_108")
    os.makedirs(path)
    torch.save({"model": model.state_dict(), "completed_steps": 108}, os.path.join(path, "state.pt"))


if __name__ == "__main__":
    main()
