import torch.nn as nn


def make_stage(i):
    if i == 0:
        return nn.Sequential(nn.Linear(48, 64), nn.GELU(), nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True))
    return nn.Sequential(nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True), nn.Linear(64, 16))
