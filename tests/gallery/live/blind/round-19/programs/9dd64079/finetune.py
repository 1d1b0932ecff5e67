import argparse
import time
from datetime import timedelta

import torch
import torch.nn as nn
from accelerate import Accelerator, InitProcessGroupKwargs
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

from registry import CheckpointRegistry


def make_data(n, length=32, vocab=500):
    g = torch.Generator().manual_seed(11)
    ids = torch.randint(5, vocab, (n, length), generator=g)
    labels = (ids[:, :8].float().mean(1) > ids[:, 8:].float().mean(1)).long()
    return TensorDataset(ids, labels)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--output-dir", required=True)
    ap.add_argument("--epochs", type=int, default=500)
    ap.add_argument("--save-steps", type=int, default=40)
    ap.add_argument("--save-total-limit", type=int, default=3)
    args = ap.parse_args()

    torch.set_num_threads(1)
    acc = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=2))])
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=500, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=256, max_position_embeddings=64, num_labels=2))
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    loader = DataLoader(make_data(4096), batch_size=16, shuffle=True)
    sched = get_linear_schedule_with_warmup(opt, 50, args.epochs * len(loader))
    model, opt, loader, sched = acc.prepare(model, opt, loader, sched)
    registry = CheckpointRegistry(args.output_dir, args.save_total_limit)

    step, t0 = 0, time.time()
    for epoch in range(args.epochs):
        model.train()
        for ids, labels in loader:
            out = model(input_ids=ids, labels=labels)
            acc.backward(out.loss)
            acc.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
            step += 1
            if step % 20 == 0:
                acc.print(f"step {step} loss {out.loss.item():.4f} ({20 / (time.time() - t0):.1f} it/s)", flush=True)
                t0 = time.time()
            if step % args.save_steps == 0:
                if acc.is_main_process:
                    registry.add(step, acc.unwrap_model(model).state_dict(), {"loss": out.loss.item()})
                acc.wait_for_everyone()


if __name__ == "__main__":
    main()
