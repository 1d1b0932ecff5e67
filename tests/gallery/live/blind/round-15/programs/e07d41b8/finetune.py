import argparse
import os
import time

import torch
import torch.nn.functional as F
from accelerate import Accelerator, skip_first_batches
from datasets import load_dataset
from torch.utils.data import DataLoader

from modeling import build_model
from tokenization import ByteMergeTokenizer, encode_chat


def collate(examples):
    ids = torch.tensor([e["input_ids"] for e in examples])
    labels = torch.tensor([e["labels"] for e in examples])
    return {"input_ids": ids, "labels": labels}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--resume_from")
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--per_device_train_batch_size", type=int, default=4)
    parser.add_argument("--max_seq_length", type=int, default=128)
    parser.add_argument("--logging_steps", type=int, default=4)
    args = parser.parse_args()

    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    tokenizer = ByteMergeTokenizer()

    def encode(example):
        ids, labels = encode_chat(tokenizer, example["messages"], args.max_seq_length)
        return {"input_ids": ids, "labels": labels}

    raw = load_dataset("json", data_files=args.data, split="train", streaming=True,
                       cache_dir=os.path.join(args.output_dir, "cache"))
    rank, world = accelerator.process_index, accelerator.num_processes
    dataset = raw.filter(lambda _, i: i % world == rank, with_indices=True)
    dataset = dataset.map(encode, remove_columns=["messages"])
    train_dataloader = DataLoader(dataset, batch_size=args.per_device_train_batch_size, collate_fn=collate)
    steps_per_epoch = 1024 // world // args.per_device_train_batch_size

    model = build_model()
    completed_steps, starting_epoch, resume_step = 0, 0, None
    if args.resume_from:
        state = torch.load(os.path.join(args.resume_from, "state.pt"))
        model.load_state_dict(state["model"])
        completed_steps = state["completed_steps"]
        starting_epoch = completed_steps // steps_per_epoch
        resume_step = completed_steps - starting_epoch * steps_per_epoch
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.print(f"epoch {starting_epoch}, completed steps {completed_steps}, "
                      f"{steps_per_epoch} steps per epoch")

    start = time.time()
    for epoch in range(starting_epoch, args.num_train_epochs):
        model.train()
        if args.resume_from and resume_step is not None:
            active_dataloader = skip_first_batches(train_dataloader, resume_step)
        else:
            active_dataloader = train_dataloader
        for batch in active_dataloader:
            logits = model(batch["input_ids"])
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten(),
                                   ignore_index=-100)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            completed_steps += 1
            if completed_steps % args.logging_steps == 0:
                accelerator.print(f"[{time.time() - start:7.1f}s] epoch {epoch} step {completed_steps} "
                                  f"loss {loss.item():.4f}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
