from data import Shard
from torch.utils.data import DataLoader


def main():
    ds = Shard("x.bin")
    for batch in DataLoader(ds, batch_size=None, num_workers=1):
        print(batch)


if __name__ == "__main__":
    main()
