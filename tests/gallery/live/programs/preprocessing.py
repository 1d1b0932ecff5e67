"""All ranks tokenise their part of a corpus in Python before training."""

import random

import torch.distributed as dist
from kit import Log, Trainer, connect, options, start


def lines(seed):
    words = random.Random(seed)
    while True:
        yield " ".join(words.choice(["alpha", "beta", "gamma", "delta", "epsilon"]) for _ in range(60))


def tokenise(line, vocabulary):
    tokens = []
    for word in line.split():
        for end in range(len(word), 0, -1):
            if word[:end] in vocabulary:
                tokens.append(vocabulary[word[:end]])
                break
        else:
            vocabulary[word] = len(vocabulary)
    return tokens


def main(args):
    rank, _ = connect(args)
    log = Log(args, rank)
    vocabulary, count = {}, 0
    for number, line in enumerate(lines(args.seed + rank)):
        count += len(tokenise(line, vocabulary))
        if number % 5000 == 0:
            log.say(f"tokenised {number} lines, {count} tokens")
        if number == 5_000_000:
            break
    dist.barrier()
    Trainer(args, rank).train_step(0)


if __name__ == "__main__":
    start(main, options())
