from torch.utils.data import DataLoader

data = list(range(100))
loader = DataLoader(data, num_workers=2, multiprocessing_context="spawn")
for b in loader:
    print(b)
