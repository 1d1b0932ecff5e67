import tempfile
import time

import numpy as np
import torch
from transformers import (
    GenerationConfig,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    TrainerCallback,
)

from archive import ChecksumManifest
from pairs import EOS, PAD, VOCAB, ReversePairs, pad_collate


class PacedTrainer(Seq2SeqTrainer):
    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        time.sleep(0.12)
        return loss

    def prediction_step(self, *args, **kwargs):
        out = super().prediction_step(*args, **kwargs)
        time.sleep(0.25)
        return out


class Ticker(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.is_world_process_zero and state.global_step % 10 == 0:
            print(f"step {state.global_step}", flush=True)


def exact_match(pred):
    tokens = np.where(pred.predictions < 0, PAD, pred.predictions)[:, 1:]
    labels = np.where(pred.label_ids < 0, PAD, pred.label_ids)
    width = min(tokens.shape[1], labels.shape[1])
    return {"token_accuracy": float((tokens[:, :width] == labels[:, :width]).mean())}


def main():
    torch.manual_seed(5)
    model = T5ForConditionalGeneration(
        T5Config(
            vocab_size=VOCAB, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4,
            decoder_start_token_id=PAD, pad_token_id=PAD, eos_token_id=EOS,
        )
    )
    out = tempfile.mkdtemp(prefix="s2s_")
    args = Seq2SeqTrainingArguments(
        output_dir=out,
        use_cpu=True,
        ddp_backend="gloo",
        ddp_timeout=2400,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        max_steps=50000,
        learning_rate=2e-3,
        eval_strategy="steps",
        eval_steps=60,
        save_strategy="steps",
        save_steps=60,
        save_total_limit=2,
        logging_steps=20,
        predict_with_generate=True,
        generation_config=GenerationConfig(
            max_length=16, decoder_start_token_id=PAD, pad_token_id=PAD, eos_token_id=EOS
        ),
        dataloader_num_workers=1,
        dataloader_persistent_workers=True,
        remove_unused_columns=False,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = PacedTrainer(
        model=model,
        args=args,
        train_dataset=ReversePairs(4000, seed=1),
        eval_dataset=ReversePairs(800, seed=2),
        data_collator=pad_collate,
        compute_metrics=exact_match,
        callbacks=[ChecksumManifest(), Ticker()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
