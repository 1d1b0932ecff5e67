from torch.utils.data import DataLoader

WORKERS = 24


def loaders(corpora):
    found = {}
    for split in ("train", "dev", "test"):
        found[split] = DataLoader(corpora[split], batch_size=16, num_workers=WORKERS, persistent_workers=True)
    return found


def main():
    by_split = loaders({"train": [], "dev": [], "test": []})
    print(len(by_split))


main()
