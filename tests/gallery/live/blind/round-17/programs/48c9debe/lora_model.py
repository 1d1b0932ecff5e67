import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, d_in, d_out, rank=4):
        super().__init__()
        self.base = nn.Linear(d_in, d_out)
        self.base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(rank, d_in) * 0.02)
        self.lora_b = nn.Parameter(torch.zeros(d_out, rank))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.lora_a), self.lora_b)


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.norm.requires_grad_(False)
        self.fc1 = LoRALinear(dim, 4 * dim)
        self.fc2 = LoRALinear(4 * dim, dim)

    def forward(self, x):
        return x + self.fc2(F.gelu(self.fc1(self.norm(x))))

    def adapters(self):
        return [p for n, p in self.named_parameters() if "lora_" in n]


class Stage(nn.Module):
    """A contiguous slice of the network; the first stage embeds, the last one has the head."""

    def __init__(self, index, num_stages, num_layers=8, vocab=128, dim=64):
        super().__init__()
        per = num_layers // num_stages
        self.first, self.last = index == 0, index == num_stages - 1
        self.layers = nn.ModuleDict({str(i): Layer(dim) for i in range(index * per, (index + 1) * per)})
        if self.first:
            self.embed = nn.Embedding(vocab, dim)
            self.embed.requires_grad_(False)
        if self.last:
            self.head = nn.Linear(dim, vocab)
            self.head.requires_grad_(False)

    def forward(self, x):
        if self.first:
            x = self.embed(x)
        for layer in self.layers.values():
            x = layer(x)
        return self.head(x) if self.last else x

    def freeze_layers(self, ids):
        for i in ids:
            if str(i) in self.layers:
                for p in self.layers[str(i)].adapters():
                    p.requires_grad_(False)
                    p.grad = None
