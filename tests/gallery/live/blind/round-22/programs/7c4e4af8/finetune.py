import argparse
import time

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs, set_seed
from datetime import timedelta
from datasets import Dataset
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

from checkpointing import CheckpointManager


def build_corpus(rows=6000, length=24, vocab=200):
    g = torch.Generator().manual_seed(7)
    ids = torch.randint(3, vocab, (rows, length), generator=g)
    labels = (ids.sum(-1) % 2).tolist()
    ds = Dataset.from_dict({"input_ids": ids.tolist(), "labels": labels})
    return ds.with_format("torch")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save_steps", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=200)
    args = parser.parse_args()

    accelerator = Accelerator(
        gradient_accumulation_steps=2,
        kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=45))],
    )
    set_seed(11)
    config = BertConfig(vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=64, max_position_embeddings=32, num_labels=2)
    model = BertForSequenceClassification(config)
    loader = DataLoader(build_corpus(), batch_size=8, shuffle=True, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    schedule = get_linear_schedule_with_warmup(optimizer, 20, 50000)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    manager = CheckpointManager(accelerator)

    step = 0
    for epoch in range(args.epochs):
        model.train()
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            time.sleep(0.1)
            if not accelerator.sync_gradients:
                continue
            step += 1
            if step % 10 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
            if step % args.save_steps == 0:
                manager.save(model, step)


if __name__ == "__main__":
    main()
