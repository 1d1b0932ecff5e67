import os

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from prm_data import BAD, GOOD, PAD, VOCAB, StepRewardDataset, collate
from step_metric import StepAccuracy

WORKDIR = os.environ.get("PRM_WORKDIR", "/tmp/prm")


def preprocess_logits_for_metrics(logits, labels):
    shifted = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
    good = shifted[..., GOOD] > shifted[..., BAD]
    return torch.where(good, GOOD, BAD)


def make_compute_metrics(metric):
    def compute_metrics(pred, compute_result):
        labels = torch.as_tensor(pred.label_ids)
        guess = torch.as_tensor(pred.predictions)
        mask = (labels == GOOD) | (labels == BAD)
        metric.add_batch(guess[mask].tolist(), labels[mask].tolist())
        return metric.compute() if compute_result else {}

    return compute_metrics


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB, hidden_size=128, intermediate_size=256, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=256, pad_token_id=PAD,
    )
    model = LlamaForCausalLM(config)
    args = TrainingArguments(
        output_dir=os.path.join(WORKDIR, "out"),
        per_device_train_batch_size=4, per_device_eval_batch_size=4,
        max_steps=20000, learning_rate=3e-4, logging_steps=10, eval_strategy="steps", eval_steps=60,
        batch_eval_metrics=True, save_strategy="no", report_to=[], use_cpu=True,
        remove_unused_columns=False, disable_tqdm=True, seed=11,
    )
    train, held_out = StepRewardDataset(4000, seed=0), StepRewardDataset(96, seed=1)
    metric = StepAccuracy(os.path.join(WORKDIR, "metrics"))
    trainer = Trainer(
        model=model, args=args, data_collator=collate, train_dataset=train, eval_dataset=held_out,
        preprocess_logits_for_metrics=preprocess_logits_for_metrics, compute_metrics=make_compute_metrics(metric),
    )
    if trainer.is_world_process_zero():
        gold = np.array([t for _, labels in held_out.rows for t in labels if t != -100])
        metric.add_batch(np.full_like(gold, GOOD), gold, tag="majority")
        print(f"{len(train)} training rows, {gold.size} held-out steps", flush=True)
    trainer.train()


if __name__ == "__main__":
    main()
