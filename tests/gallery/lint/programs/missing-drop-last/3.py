import torch
from torch.utils.data import DataLoader


def train(model, rows, optimizer):
    static_input = torch.zeros(64, 16, device="cuda:1")
    loader = DataLoader(rows, batch_size=64, shuffle=True, drop_last=False)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = model(static_input).sum()
        loss.backward()
    for step, x in enumerate(loader):
        static_input.copy_(x)
        graph.replay()
        optimizer.step()
