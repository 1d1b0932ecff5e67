import os
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from data import HeldOut, LogLines, pad_collate
from hooks import Bootstrap, Paced, SystemMonitor


def main():
    torch.manual_seed(0)
    out = os.path.join(tempfile.gettempdir(), f"clm-{os.environ['TORCHELASTIC_RUN_ID']}")
    config = GPT2Config(vocab_size=100, n_positions=64, n_embd=32, n_layer=2, n_head=2,
                        bos_token_id=97, eos_token_id=98)
    args = TrainingArguments(
        output_dir=out, max_steps=30000, per_device_train_batch_size=4, per_device_eval_batch_size=2,
        learning_rate=1e-3, lr_scheduler_type="constant", logging_steps=10, eval_strategy="steps",
        eval_steps=80, save_steps=80, save_total_limit=2, use_cpu=True, ddp_backend="gloo",
        report_to=[], disable_tqdm=True, ddp_find_unused_parameters=False, ddp_timeout=1800,
        accelerator_config={"dispatch_batches": False},
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config), args=args, train_dataset=LogLines(), eval_dataset=HeldOut(),
        data_collator=pad_collate, compute_metrics=Bootstrap(),
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
        callbacks=[Paced(), SystemMonitor()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
