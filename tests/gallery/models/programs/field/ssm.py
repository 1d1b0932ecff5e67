"""A selective state space model over a sequence of features, causal."""
import torch
import torch.nn.functional as F
from torch import nn


class SelectiveSSM(nn.Module):
    def __init__(self, dim, state=4):
        super().__init__()
        self.in_proj = nn.Linear(dim, 2 * dim)
        self.conv = nn.Conv1d(dim, dim, 3, groups=dim, padding=2)
        self.x_proj = nn.Linear(dim, 2 * state + 1)
        self.A_log = nn.Parameter(torch.log(torch.arange(1.0, state + 1).repeat(dim, 1)))
        self.D = nn.Parameter(torch.ones(dim))
        self.dt = nn.Parameter(torch.zeros(dim))
        self.out_proj = nn.Linear(dim, dim)
        self.state = state

    def forward(self, x):
        n = x.shape[1]
        u, gate = self.in_proj(x).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., :n].transpose(1, 2))
        delta, b, c = self.x_proj(u).split([1, self.state, self.state], -1)
        delta = F.softplus(delta + self.dt)
        decay = torch.exp(delta[..., None] * -torch.exp(self.A_log))
        inp = (delta * u)[..., None] * b[:, :, None, :]
        h = torch.zeros_like(inp[:, 0])
        ys = []
        for t in range(n):
            h = decay[:, t] * h + inp[:, t]
            ys.append((h * c[:, t, None, :]).sum(-1))
        y = torch.stack(ys, 1) + u * self.D
        return self.out_proj(y * F.silu(gate))


class SequenceModel(nn.Module):
    def __init__(self, vocab=40, dim=16, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.mixers = nn.ModuleList(SelectiveSSM(dim) for _ in range(layers))
        self.norm_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for norm, mixer in zip(self.norms, self.mixers):
            x = x + mixer(norm(x))
        return self.lm_head(self.norm_f(x))


def make():
    return SequenceModel()


def batch(rows, length=24):
    return torch.randint(0, 40, (rows, length))
