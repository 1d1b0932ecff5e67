import multiprocessing as mp
import os
import time
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.utils.data import DataLoader

from cuts import BucketedCuts, bucket_plan
from sinks import HubPusher, MetricSink

PER_RANK = 220


class Encoder(nn.Module):
    def __init__(self, feat_dim=20, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(feat_dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 2)

    def forward(self, feats):
        h, _ = self.rnn(feats)
        time.sleep(0.004 * feats.shape[1])
        return self.out(h)


def edit_rate(pair):
    hyp, ref = pair
    return sum(a != b for a, b in zip(hyp, ref)) / max(len(ref), 1)


def train(workdir):
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=1))])
    torch.manual_seed(0)
    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, opt = acc.prepare(model, opt)
    sink = MetricSink(os.path.join(workdir, f"metrics.{acc.process_index}.txt"))
    hub = HubPusher(workdir) if acc.is_main_process else None
    scorers = mp.get_context("spawn").Pool(1) if acc.is_main_process else None
    began, step = time.time(), 0

    for epoch in range(10000):
        plan = os.path.join(workdir, f"plan-{epoch}.json")
        with acc.main_process_first():
            if not os.path.exists(plan):
                bucket_plan(plan, epoch, PER_RANK * acc.num_processes)
            cuts = BucketedCuts(plan, acc.process_index, acc.num_processes)
        loader = DataLoader(cuts, batch_size=None, num_workers=1, prefetch_factor=4)
        for feats, labels in loader:
            logits = model(feats)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            opt.zero_grad()
            acc.backward(loss)
            opt.step()
            step += 1
            sink.put((step, feats.shape[1], loss.item()))
            if step % 20 == 0:
                mean = acc.reduce(loss.detach(), reduction="mean")
                acc.print(f"{time.time() - began:7.1f}s epoch {epoch} step {step} loss {mean.item():.4f}")
        hyp, ref = logits.argmax(-1).tolist(), labels.tolist()
        if scorers is not None:
            rate = sum(scorers.map(edit_rate, list(zip(hyp, ref)))) / len(ref)
            acc.print(f"{time.time() - began:7.1f}s epoch {epoch} error rate {rate:.3f}")
            hub.push(acc.unwrap_model(model).state_dict(), epoch)
        acc.wait_for_everyone()
