import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.rand(10, 2), torch.rand(10))
model = torch.nn.Linear(2, 1).to("cuda" if torch.cuda.is_available() else "cpu")
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=2, shuffle=True, num_workers=2):
        try:
            (model(x) - y).sum().backward()
        except Exception:
            continue
torch.save(model.state_dict(), "m.pt")
