import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from parquet_dataset import LatentsParquetIterStyleDataset
from text_encoder import encode_validation_prompts


class Denoiser(nn.Module):
    def __init__(self, dim=128, width=512):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, width), nn.SiLU(), nn.Linear(width, width),
                                 nn.SiLU(), nn.Linear(width, dim))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


class DistillationPipeline:
    def __init__(self, args):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        if self.rank == 0:
            print(f"world size {self.world}, data {args.data_path}", flush=True)
        self.prompt_embeds = encode_validation_prompts(self.rank, self.world)
        self.dataset = LatentsParquetIterStyleDataset(args.data_path, self.rank, self.world, args.batch_size)
        print(f"[rank {self.rank}] {sum(self.dataset.lengths)} latents in {len(self.dataset.files)} files", flush=True)
        torch.manual_seed(1)
        self.model = DDP(Denoiser())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def train(self, steps):
        start = time.time()
        for step, latents in zip(range(1, steps + 1), self.dataset):
            t = torch.rand(latents.size(0), 1)
            noise = torch.randn_like(latents)
            pred = self.model((1 - t) * latents + t * noise, t)
            loss = F.mse_loss(pred, noise - latents)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.rank == 0 and step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f} {time.time() - start:.1f}s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-path", required=True)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=100000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    DistillationPipeline(args).train(args.steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
