import torch
from datasets import load_dataset

device = torch.device("cuda")
model = torch.nn.Linear(4, 4).to(device)
ds = load_dataset("json", data_files="a.json")
ds = ds.map(lambda r: {"y": model(torch.tensor(r["x"], device=device)).tolist()}, num_proc=8)
