import argparse
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from remote_dataset import RemoteRows


class Report(TrainerCallback):
    def __init__(self):
        self.start = time.time()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero:
            text = " ".join(f"{k}={v:.4g}" for k, v in logs.items() if isinstance(v, (int, float)))
            print(f"[{time.time() - self.start:6.1f}s] step {state.global_step} {text}", flush=True)

    def on_save(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            print(f"saved checkpoint-{state.global_step}", flush=True)


def collate(rows):
    ids = torch.stack([r["input_ids"] for r in rows])
    return {"input_ids": ids, "labels": ids.clone()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True)
    parser.add_argument("--output-dir", required=True)
    cli = parser.parse_args()
    torch.set_num_threads(1)
    config = GPT2Config(vocab_size=600, n_positions=64, n_embd=128, n_layer=3, n_head=4)
    args = TrainingArguments(
        output_dir=cli.output_dir, use_cpu=True, per_device_train_batch_size=12, per_device_eval_batch_size=24,
        max_steps=100000, learning_rate=3e-4, logging_steps=20, eval_strategy="steps", eval_steps=200,
        save_strategy="steps", save_steps=200, save_total_limit=2, dataloader_num_workers=1,
        dataloader_prefetch_factor=12, dataloader_persistent_workers=True, report_to=[], disable_tqdm=True,
        remove_unused_columns=False, ddp_find_unused_parameters=False, seed=4)
    trainer = Trainer(model=GPT2LMHeadModel(config), args=args, data_collator=collate,
                      train_dataset=RemoteRows(cli.rows, 8000), eval_dataset=RemoteRows(cli.rows, 192),
                      callbacks=[Report()])
    trainer.train()


if __name__ == "__main__":
    main()
