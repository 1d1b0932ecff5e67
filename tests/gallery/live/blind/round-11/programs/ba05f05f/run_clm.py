import argparse
import os

import numpy as np
import torch
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from callbacks import HeartbeatCallback

VOCAB = 512


def build(n, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        length = int(rng.integers(24, 56))
        rows.append(np.cumsum(rng.integers(0, 5, size=length)) % VOCAB)
    return Dataset.from_dict({"input_ids": [r.tolist() for r in rows]})


def collate(features):
    width = max(len(f["input_ids"]) for f in features)
    ids = torch.zeros(len(features), width, dtype=torch.long)
    labels = torch.full((len(features), width), -100, dtype=torch.long)
    mask = torch.zeros(len(features), width, dtype=torch.long)
    for i, f in enumerate(features):
        n = len(f["input_ids"])
        ids[i, :n] = torch.tensor(f["input_ids"])
        labels[i, :n] = ids[i, :n]
        mask[i, :n] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def token_accuracy(out):
    preds, labels = out.predictions[:, :-1], out.label_ids[:, 1:]
    keep = labels != -100
    return {"token_accuracy": float((preds[keep] == labels[keep]).mean())}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--output_dir", required=True)
    a = p.parse_args()
    torch.set_num_threads(1)
    args = TrainingArguments(
        output_dir=a.output_dir,
        use_cpu=True,
        max_steps=60000,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=16,
        gradient_accumulation_steps=2,
        dataloader_num_workers=1,
        dataloader_persistent_workers=True,
        logging_steps=25,
        eval_strategy="steps",
        eval_steps=75,
        save_strategy="steps",
        save_steps=150,
        save_total_limit=2,
        report_to=[],
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=64, n_embd=64, n_layer=2, n_head=4,
                                       bos_token_id=0, eos_token_id=0))
    trainer = Trainer(
        model=model, args=args, data_collator=collate,
        train_dataset=build(20000, 1), eval_dataset=build(500, 2),
        compute_metrics=token_accuracy,
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
        callbacks=[HeartbeatCallback(os.path.join(a.output_dir, f"status-{os.environ['RANK']}.json"))])
    trainer.train()


if __name__ == "__main__":
    main()
