import time

import torch
import torch.multiprocessing as mp
from transformers import (BertConfig, BertForSequenceClassification, Trainer, TrainerCallback,
                          TrainingArguments, default_data_collator)

from intents import VERBS, IntentSet, build_tokenizer, sentences


class EpochTimer(TrainerCallback):
    def on_epoch_begin(self, args, state, control, **kwargs):
        self.start = time.time()

    def on_epoch_end(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            print(f"epoch {state.epoch:.0f} done in {time.time() - self.start:.1f}s", flush=True)


def main():
    mp.set_start_method("spawn", force=True)
    torch.set_num_threads(1)
    rows = sentences(320, seed=11)
    tokenizer = build_tokenizer([text for text, _ in rows])
    config = BertConfig(vocab_size=tokenizer.get_vocab_size(), hidden_size=64, num_hidden_layers=2,
                        num_attention_heads=4, intermediate_size=128, max_position_embeddings=32, num_labels=len(VERBS))
    args = TrainingArguments(
        output_dir=".out",
        use_cpu=True,
        per_device_train_batch_size=16,
        num_train_epochs=300,
        learning_rate=3e-4,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=2,
        ddp_find_unused_parameters=False,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=args,
        train_dataset=IntentSet(rows, tokenizer),
        data_collator=default_data_collator,
        callbacks=[EpochTimer()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
