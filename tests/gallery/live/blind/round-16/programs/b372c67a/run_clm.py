import argparse
import os

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

from callbacks import CheckpointMirror, ScheduledGC


class Chunks(Dataset):
    def __init__(self, size, length=64, vocab=400, seed=0):
        gen = torch.Generator().manual_seed(seed)
        start = torch.randint(vocab, (size, 1), generator=gen)
        stride = torch.randint(1, 7, (size, 1), generator=gen)
        self.ids = (start + stride * torch.arange(length)) % vocab

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


def keep_argmax(logits, labels):
    return logits.argmax(-1)


def metrics(pred):
    guess, labels = pred.predictions[:, :-1], pred.label_ids[:, 1:]
    per_position = [(guess[:, i] == labels[:, i]).mean() for i in range(guess.shape[1])]
    return {"accuracy": float(np.mean(per_position)), "last_position": float(per_position[-1])}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--output-dir", required=True)
    args = p.parse_args()
    torch.set_num_threads(1)
    set_seed(5)
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=400, n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0,
    ))
    targs = TrainingArguments(
        output_dir=args.output_dir, per_device_train_batch_size=8, per_device_eval_batch_size=16,
        num_train_epochs=500, learning_rate=1e-3, logging_steps=20, eval_strategy="steps", eval_steps=60,
        save_strategy="steps", save_steps=120, save_total_limit=2, report_to=[], use_cpu=True,
        ddp_backend="gloo", disable_tqdm=True, ddp_find_unused_parameters=False, dataloader_num_workers=0,
    )
    trainer = Trainer(
        model=model, args=targs, train_dataset=Chunks(40000), eval_dataset=Chunks(700, seed=1),
        compute_metrics=metrics, preprocess_logits_for_metrics=keep_argmax,
        callbacks=[ScheduledGC(50), CheckpointMirror(os.path.join(args.output_dir, "mirror"))],
    )
    trainer.train()
    trainer.accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
