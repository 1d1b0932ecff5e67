import torch.nn as nn


def build_model(vocab=400, dim=96, hidden=192, classes=20):
    return nn.Sequential(
        nn.EmbeddingBag(vocab, dim), nn.Linear(dim, hidden), nn.ReLU(),
        nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes),
    )
