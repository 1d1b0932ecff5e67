import torch

device = torch.device("mps" if torch.backends.mps.is_available() else "cpu")
x = torch.ones(3, dtype=torch.float32, device=device)
y = torch.ones(3, dtype=torch.float64)
