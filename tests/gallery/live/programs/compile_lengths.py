"""torch.compile on one rank meets a new sequence length in each batch and compiles again; its peers wait."""

import torch
from kit import Log, connect, options, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch._dynamo.config.recompile_limit = 10_000
torch._dynamo.config.accumulated_recompile_limit = 10_000


def main(args):
    rank, _ = connect(args)
    log = Log(args, rank)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    model = DistributedDataParallel(nn.Sequential(layer, nn.Linear(32, 32)))
    warm = torch.compile(nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 32)), dynamic=False)
    for step in range(args.steps):
        loss = model(torch.randn(4, 12, 32)).square().mean()
        loss.backward()
        log.step(step, loss.detach())
        if step == args.when and rank == args.pick:
            for length in range(8, 4000):
                warm(torch.randn(4, length, 32)).sum().backward()


if __name__ == "__main__":
    start(main, options())
