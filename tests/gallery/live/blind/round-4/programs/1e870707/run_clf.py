import argparse
import ctypes
import signal
import time

import torch
import torch.nn as nn
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

from helpers.gitinfo import snapshot


class Reviews(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randint(5, 800, (n, 32), generator=g)
        self.y = (self.x.float().mean(1) > 402).long()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"input_ids": self.x[i], "labels": self.y[i]}


class ModelCard(TrainerCallback):
    def on_save(self, args, state, control, **kw):
        if state.is_world_process_zero:
            print(f"rendering model card for checkpoint-{state.global_step} ...", flush=True)
            time.sleep(6)
            print("model card written", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--output_dir")
    a = ap.parse_args()
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)
    procs = snapshot()
    cfg = BertConfig(vocab_size=800, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
    args = TrainingArguments(a.output_dir, per_device_train_batch_size=16, max_steps=100000, eval_strategy="steps",
                             eval_steps=100, save_steps=100, save_total_limit=1, logging_steps=10, report_to=[],
                             use_cpu=True, disable_tqdm=True)
    Trainer(model=BertForSequenceClassification(cfg), args=args, train_dataset=Reviews(20000, 0),
            eval_dataset=Reviews(400, 1), callbacks=[ModelCard()]).train()
    return procs


if __name__ == "__main__":
    main()
