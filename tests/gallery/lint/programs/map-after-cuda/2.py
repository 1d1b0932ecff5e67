import torch
from datasets import load_dataset


def is_close(row):
    return bool(torch.tensor(row["v"]).cuda().norm() < 1)


def main():
    torch.cuda.set_device(0)
    raw = load_dataset("imdb", split="train")
    small = raw.select(range(1000))
    small = small.filter(is_close, num_proc=4)
    return small


if __name__ == "__main__":
    main()
