import argparse
import logging
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.fsdp import fully_shard

from components.checkpoint import CheckpointManager
from components.metrics import MetricsProcessor
from model import Transformer

logger = logging.getLogger("titan")


class Trainer:
    def __init__(self, args):
        self.args = args
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        self.mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
        torch.manual_seed(42)
        self.model = Transformer()
        for layer in self.model.layers:
            fully_shard(layer, mesh=self.mesh)
        fully_shard(self.model, mesh=self.mesh)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=8e-4, fused=False)
        self.checkpointer = CheckpointManager(os.path.join(args.dump_folder, "checkpoint"), 25, keep_latest_k=2)
        self.metrics = MetricsProcessor(args.dump_folder, log_freq=10)
        self.gen = torch.Generator().manual_seed(self.rank)

    def batch(self):
        start = torch.randint(0, 1024, (self.args.local_batch_size, 1), generator=self.gen)
        return (start * 31 + torch.arange(self.args.seq_len + 1) * (1 + start % 5)) % 1024

    def loss(self, tokens):
        logits = self.model(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())

    def train_step(self, step):
        self.optimizer.zero_grad()
        tokens = self.batch()
        loss = self.loss(tokens)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        self.optimizer.step()
        self.metrics.tokens += tokens.numel()
        self.metrics.log(step, loss, norm)

    @torch.no_grad()
    def validate(self, step):
        self.model.eval()
        losses = torch.stack([self.loss(self.batch()) for _ in range(8)])
        self.model.train()
        self.metrics.log_validation(step, losses.mean())

    @record
    def train(self):
        for step in range(1, self.args.steps + 1):
            self.train_step(step)
            self.checkpointer.save(step, self.model, self.optimizer)
            if step % self.args.validate_freq == 0:
                self.validate(step)
        self.checkpointer.close()
        dist.destroy_process_group()
        logger.info("Training completed")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--dump-folder", default="./outputs")
    p.add_argument("--steps", type=int, default=50000)
    p.add_argument("--seq-len", type=int, default=64)
    p.add_argument("--local-batch-size", type=int, default=4)
    p.add_argument("--validate-freq", type=int, default=60)
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="[titan] %(asctime)s - %(message)s")
    Trainer(args).train()
