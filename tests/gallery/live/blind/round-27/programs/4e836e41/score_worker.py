import pickle
import struct
import sys

import torch


def main():
    reference = torch.load(sys.argv[1])
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while True:
        header = stdin.read(4)
        if len(header) < 4:
            break
        samples = pickle.loads(stdin.read(struct.unpack("<I", header)[0]))
        score = (samples.mean(0) - reference["mean"]).pow(2).sum() + (samples.std(0) - reference["std"]).pow(2).sum()
        stdout.write(f"{score.item():.5f}\n".encode())
        stdout.flush()


if __name__ == "__main__":
    main()
