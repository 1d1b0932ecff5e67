"""What the training programs beside it share: options, start, models, data, log lines."""

import argparse
import os
import random
import socket
import sys
import time
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

warnings.filterwarnings("ignore", category=UserWarning)

OLD_NEWS = [
    (ConnectionResetError, "[Errno 104] Connection reset by peer", "metrics upload failed, will be sent with the next batch"),
    (RuntimeError, "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity)", "profile run skipped"),
    (FileNotFoundError, "[Errno 2] No such file or directory: '/data/cache/vocab.json'", "vocabulary built from scratch"),
    (TimeoutError, "The read operation timed out", "retrying once: ok"),
    (ValueError, "stack expects each tensor to be equal size, but got [17] at entry 0 and [23] at entry 3", "sample 9114 dropped"),
]


class TextModel(nn.Module):
    def __init__(self, vocabulary=211, width=48):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.mixer = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        mixed, _ = self.mixer(self.embedding(tokens[:, :-1]))
        return F.cross_entropy(self.head(mixed).flatten(0, 1), tokens[:, 1:].flatten())


class ImageModel(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 12, 3, stride=2), nn.ReLU(), nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(24, classes)

    def forward(self, images):
        labels = images.flatten(1).sum(1).abs().long() % 10
        return F.cross_entropy(self.head(self.features(images).flatten(1)), labels)


class TabularModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, rows):
        return F.mse_loss(self.body(rows).squeeze(1), rows.mean(1))


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 64, batch_first=True)
        self.embedding = nn.Embedding(97, width)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 97)

    def forward(self, tokens):
        return F.cross_entropy(self.head(self.layers(self.embedding(tokens))).flatten(0, 1), tokens.flatten())


def make_model(seed):
    return (TextModel, ImageModel, TabularModel, Encoder)[seed % 4]()


def make_batch(seed, size=8):
    kind = seed % 4
    if kind == 0:
        return torch.randint(0, 211, (size, 17))
    if kind == 1:
        return torch.randn(size, 3, 24, 24)
    return torch.randn(size, 20) if kind == 2 else torch.randint(0, 97, (size, 16))


def options(**more):
    parser = argparse.ArgumentParser()
    parser.add_argument("--pick", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--form", default="loud")
    parser.add_argument("--when", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--nproc", type=int, default=0)
    parser.add_argument("--master", default="127.0.0.1:29500")
    for name, default in more.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args([*sys.argv[1:], *os.environ.get("RUN_WORDS", "").split()])


def _spawned(index, main, args):
    host, port = args.master.split(":")
    os.environ.update(MASTER_ADDR=host, MASTER_PORT=port, RANK=str(index), LOCAL_RANK=str(index), WORLD_SIZE=str(args.nproc))
    main(args)


def start(main, args):
    if args.nproc:
        torch.set_num_threads(1)
        mp.spawn(_spawned, args=(main, args), nprocs=args.nproc)
    else:
        main(args)


def connect(args):
    torch.manual_seed(args.seed)
    random.seed(args.seed * 1000 + int(os.environ.get("RANK", 0)))
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


class Log:
    def __init__(self, args, rank):
        self.form, self.rank, self.noisy = args.form, rank, (args.pick + 1) % int(os.environ.get("WORLD_SIZE", 1))
        self.file = open(f"metrics-{rank}.csv", "a") if args.form == "quiet" else None
        self.news = random.Random(args.seed).choice(OLD_NEWS)
        self.began = time.time()

    def step(self, step, loss=0.0):
        if self.file is not None:
            self.file.write(f"step {step},{float(loss):.4f}\n")
            self.file.flush()
        elif self.form == "loud":
            print(f"[rank{self.rank}] {time.strftime('%H:%M:%S')} step {step} loss {float(loss):.4f}", flush=True)
        else:
            if self.rank == 0:
                print(f"step {step} | loss {float(loss):.4f} | {time.time() - self.began:.1f} s", flush=True)
            if step == 2 and self.rank == self.noisy:
                self.grumble()

    def say(self, text):
        if self.file is None:
            print(f"[rank{self.rank}] {text}", flush=True)
        else:
            self.file.write(text + "\n")
            self.file.flush()

    def grumble(self):
        import traceback

        kind, text, after = self.news
        try:
            raise kind(text)  # noqa: TRY301
        except kind:
            traceback.print_exc()
        print(f"WARNING: {after}", file=sys.stderr, flush=True)


class Trainer:
    def __init__(self, args, rank, wrap=True, lr=1e-3):
        self.args, self.rank = args, rank
        self.model = make_model(args.seed)
        if wrap:
            self.model = DistributedDataParallel(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.log = Log(args, rank)

    def train_step(self, step, batch=None):
        loss = self.model(make_batch(self.args.seed) if batch is None else batch)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.log.step(step, loss.detach())
        time.sleep(0.02)
        return loss.detach()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def mesh_of_pairs(world, names):
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=names)


class TensorBlock:
    def __init__(self, world, width=32):
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        self.mesh = mesh_of_pairs(world, ("data", "tensor"))
        block = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.model = parallelize_module(block, self.mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.across = self.mesh.get_group("data")

    def train_step(self, rows):
        loss = self.model(rows).square().mean()
        loss.backward()
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad.to_local(), group=self.across)
        self.optimizer.step()
        self.optimizer.zero_grad()
        time.sleep(0.02)
        return loss.detach()


class Stage:
    def __init__(self, world, width=16):
        self.mesh = mesh_of_pairs(world, ("replica", "stage"))
        self.number = self.mesh.get_local_rank("stage")
        self.other = dist.get_rank() + (1 if self.number == 0 else -1)
        self.layers = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=0.01)
        self.width = width

    def hand_on(self, hidden, micro, last):
        dist.send(hidden.detach(), dst=self.other)

    def forward(self, sizes):
        done = []
        for micro, size in enumerate(sizes):
            rows = torch.randn(size, self.width)
            if self.number > 0:
                dist.recv(rows, src=self.other)
                rows.requires_grad_()
            hidden = self.layers(rows)
            if self.number == 0:
                self.hand_on(hidden, micro, len(sizes) - 1)
            done.append((rows, hidden))
        return done

    def backward(self, done):
        loss = 0.0
        for rows, hidden in done:
            if self.number == 0:
                gradient = torch.empty_like(hidden)
                dist.recv(gradient, src=self.other)
                hidden.backward(gradient)
            else:
                loss = hidden.square().mean()
                loss.backward()
                dist.send(rows.grad, dst=self.other)
        return loss

    def train_step(self, sizes):
        loss = self.backward(self.forward(sizes))
        for parameter in self.layers.parameters():
            dist.all_reduce(parameter.grad, group=self.mesh.get_group("replica"))
        self.optimizer.step()
        self.optimizer.zero_grad()
        time.sleep(0.02)
        return float(loss)


def gpipe(rank, world, parts, width=16):
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    layer = nn.Sequential(nn.Linear(width, width), nn.Tanh())
    stage = PipelineStage(layer, rank, world, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=parts, loss_fn=F.mse_loss)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)

    def run():
        rows, wanted, losses = torch.randn(8, width), torch.zeros(8, width), []
        if rank == 0:
            schedule.step(rows)
        elif rank == world - 1:
            schedule.step(target=wanted, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.02)
        return float(losses[0].detach()) if losses else 0.0

    return run


def hybrid(world, width=32):
    from torch.distributed.fsdp import fully_shard

    mesh = mesh_of_pairs(world, ("replicate", "shard"))
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(3)))
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, torch.optim.AdamW(model.parameters())
