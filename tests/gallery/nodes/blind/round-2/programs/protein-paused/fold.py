import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


class Folder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(21, 64)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True) for _ in range(2))
        self.out = nn.Linear(64, 3)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


def main() -> None:
    dist.init_process_group("gloo")
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    model = Folder()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(100_000):
        loss = model(torch.randn(2, 40, 21)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0 and step % 10 == 0:
            print("step", step, loss.item(), flush=True)


if __name__ == "__main__":
    main()
