"""A transformers Trainer that replays the same held-out batches after each epoch, so they are loaded once and kept."""

import argparse
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments


class Sentences(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        tokens = (torch.arange(16) + index) % 60 + 1
        return {"input_ids": tokens, "attention_mask": torch.ones(16, dtype=torch.long), "labels": index % 2}


class Replay(TrainerCallback):
    def __init__(self, held_out):
        self.held_out, self.kept = held_out, None

    def on_train_begin(self, args, state, control, **_):
        self.kept = list(DataLoader(self.held_out, batch_size=1, num_workers=2))

    def on_epoch_end(self, args, state, control, model=None, **_):
        with torch.no_grad():
            losses = [float(model(**batch).loss) for batch in self.kept[:20]]
        print("held out", round(sum(losses) / max(1, len(losses)), 3), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_train_samples", type=int, default=20_000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    train, held_out = Sentences(given.max_train_samples), Sentences(given.max_train_samples)
    config = BertConfig(vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, max_position_embeddings=32)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=16,
        num_train_epochs=1,
        eval_strategy="no",
        save_strategy="no",
        logging_steps=10,
        report_to=[],
        use_cpu=True,
        ddp_backend="gloo",
        disable_tqdm=True,
    )
    trainer = Trainer(model=BertForSequenceClassification(config), args=args, train_dataset=train, eval_dataset=held_out, callbacks=[Replay(held_out)])
    trainer.train()
    print("done", flush=True)


if __name__ == "__main__":
    main()
