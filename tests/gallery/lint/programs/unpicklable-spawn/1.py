from torch.utils.data import DataLoader


def main(ds):
    return DataLoader(ds, num_workers=2, collate_fn=lambda b: b, multiprocessing_context="spawn")


if __name__ == "__main__":
    main([1])
