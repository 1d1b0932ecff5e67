import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

from jit_checkpoint import JITCheckpointCallback


class ChatDataset(Dataset):
    """Synthetic instruction data: a prompt, and an answer that copies a part of it."""

    def __init__(self, size, length=48, vocab=512):
        gen = torch.Generator().manual_seed(0)
        self.prompts = torch.randint(4, vocab, (size, length // 2), generator=gen)
        self.length = length

    def __len__(self):
        return len(self.prompts)

    def __getitem__(self, i):
        prompt = self.prompts[i]
        ids = torch.cat([prompt, prompt.flip(0)])
        labels = ids.clone()
        labels[: len(prompt)] = -100
        return {"input_ids": ids, "labels": labels, "attention_mask": torch.ones_like(ids)}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--output-dir", required=True)
    args = p.parse_args()
    torch.set_num_threads(1)
    set_seed(3)
    config = LlamaConfig(
        vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
    )
    model = LlamaForCausalLM(config)
    targs = TrainingArguments(
        output_dir=args.output_dir, per_device_train_batch_size=4, num_train_epochs=50,
        learning_rate=5e-4, logging_steps=20, save_strategy="steps", save_steps=100000,
        report_to=[], use_cpu=True, ddp_backend="gloo", dataloader_num_workers=0,
        disable_tqdm=True, ddp_find_unused_parameters=False, average_tokens_across_devices=False,
    )
    trainer = Trainer(
        model=model, args=targs, train_dataset=ChatDataset(20000),
        callbacks=[JITCheckpointCallback(args.output_dir)],
    )
    # exports may take long, so they synchronise on a group with a longer timeout
    export_group = dist.new_group(backend="gloo", timeout=timedelta(hours=3))
    result = trainer.train()
    dist.barrier(group=export_group)
    if trainer.is_world_process_zero():
        trainer.save_model(os.path.join(args.output_dir, "final"))
        print(f"exported step {trainer.state.global_step}: {result.metrics}", flush=True)


if __name__ == "__main__":
    main()
