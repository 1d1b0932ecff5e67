import argparse
import json

import torch

from net import Classifier


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--weights", required=True)
    p.add_argument("--examples", type=int, default=500)
    args = p.parse_args()

    model = Classifier()
    model.load_state_dict(torch.load(args.weights, weights_only=True))
    model.eval()
    gen = torch.Generator().manual_seed(11)
    correct = 0
    with torch.no_grad():
        for i in range(args.examples):
            x = torch.randn(1, 32, generator=gen)
            target = int(x.sum() > 0)
            probs = model(x).softmax(-1)[0]
            guess = int(probs.argmax())
            correct += guess == target
            print(f"example {i:05d} target={target} guess={guess} p0={probs[0]:.6f} p1={probs[1]:.6f} norm={x.norm():.4f}")
    print(json.dumps({"accuracy": correct / args.examples, "n": args.examples}))


if __name__ == "__main__":
    main()
