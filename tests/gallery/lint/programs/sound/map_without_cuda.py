import torch
from datasets import load_dataset

device = torch.device("cuda")
model = torch.nn.Linear(4, 4).to(device)
torch.cuda.set_device(0)


def count(row, field="text"):
    return {"n": len(row[field])}


def main():
    ds = load_dataset("json", data_files="a.json", split="train")
    ds = ds.map(lambda r: {"n": len(r["text"])}, num_proc=8).map(count, num_proc=8)
    ds = ds.filter(lambda r: r["label"] == 1, num_proc=4).map(str.lower, num_proc=4)
    return ds, model


if __name__ == "__main__":
    main()
