import argparse
import json
import os
import shutil
import threading
import time
from queue import Empty, Queue

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

from corpus import Reviews, collate


class MetricWriter(threading.Thread):
    def __init__(self, path):
        super().__init__(daemon=True, name="metric-writer")
        self.queue = Queue()
        self.path = path

    def put(self, **row):
        self.queue.put(row)

    def run(self):
        while True:
            try:
                row = self.queue.get(timeout=1.0)
            except Empty:
                continue
            with open(self.path, "a") as f:
                f.write(json.dumps(row) + "\n")


def evaluate(accelerator, model, loader):
    model.eval()
    good = total = 0
    for batch in loader:
        with torch.no_grad():
            logits = model(**batch).logits
        pred, ref = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
        good += int((pred == ref).sum())
        total += len(ref)
    model.train()
    return good / total


def rotate(root, keep):
    found = sorted(d for d in os.listdir(root) if d.startswith("step_"))
    for d in found[:-keep]:
        shutil.rmtree(os.path.join(root, d), ignore_errors=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--output_dir", default="runs/base")
    p.add_argument("--max_steps", type=int, default=60000)
    p.add_argument("--eval_steps", type=int, default=150)
    p.add_argument("--save_steps", type=int, default=200)
    args = p.parse_args()

    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(21)
    os.makedirs(args.output_dir, exist_ok=True)

    train_loader = DataLoader(Reviews(30000, 1), batch_size=8, shuffle=True, collate_fn=collate, drop_last=True)
    eval_loader = DataLoader(Reviews(502, 2), batch_size=16, collate_fn=collate)
    config = BertConfig(vocab_size=1500, hidden_size=96, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256, num_labels=4)
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4)
    scheduler = get_linear_schedule_with_warmup(optimizer, 100, args.max_steps)
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(model, optimizer, train_loader, eval_loader, scheduler)

    writer = None
    if accelerator.is_main_process:
        writer = MetricWriter(os.path.join(args.output_dir, "metrics.jsonl"))
        writer.start()

    step, t0 = 0, time.time()
    for epoch in range(1000):
        for batch in train_loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            step += 1
            if step % 25 == 0:
                mean = accelerator.reduce(loss.detach(), reduction="mean").item()
                accelerator.print(f"epoch {epoch} step {step} loss {mean:.4f} {step / (time.time() - t0):.1f} it/s", flush=True)
                if writer:
                    writer.put(step=step, loss=mean)
            if step % args.eval_steps == 0:
                acc = evaluate(accelerator, model, eval_loader)
                accelerator.print(f"step {step} accuracy {acc:.4f}", flush=True)
                if writer:
                    writer.put(step=step, accuracy=acc)
            if step % args.save_steps == 0:
                accelerator.save_state(os.path.join(args.output_dir, f"step_{step:07d}"))
                accelerator.wait_for_everyone()
                if accelerator.is_main_process:
                    rotate(args.output_dir, keep=2)
            if step >= args.max_steps:
                break
        if step >= args.max_steps:
            break
    accelerator.end_training()


if __name__ == "__main__":
    main()
