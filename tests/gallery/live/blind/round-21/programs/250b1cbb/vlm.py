import torch
import torch.nn as nn


class TinyVLM(nn.Module):
    def __init__(self, vocab=256, dim=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.trunk = nn.ModuleList(nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True)
                                   for _ in range(2))
        self.head = nn.Linear(dim, vocab, bias=False)
        self.patch_proj = nn.Linear(24, dim, bias=False)
        self.patch_pos = nn.Parameter(torch.zeros(4, dim))
        for p in self.vision_parameters():
            p.requires_grad_(False)

    def vision_parameters(self):
        return [self.patch_proj.weight, self.patch_pos]

    def text_parameters(self):
        vision = {id(p) for p in self.vision_parameters()}
        return [p for p in self.parameters() if id(p) not in vision]

    def forward(self, ids, patches=None):
        h = self.embed(ids)
        if patches is not None:
            h = torch.cat([self.patch_proj(patches) + self.patch_pos, h], dim=1)
        for layer in self.trunk:
            h = layer(h)
        return self.head(h[:, -ids.shape[1]:])
