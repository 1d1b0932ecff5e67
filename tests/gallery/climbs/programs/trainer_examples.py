"""A transformers Trainer with a tiny BERT of random weights; a table of examples is written after each evaluation."""

import argparse
import tempfile

import torch
import torch.distributed as dist
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

TABLE_FROM = 50  # examples; fewer make no table


class Sentences(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        tokens = (torch.arange(16) + index) % 60 + 1
        return {"input_ids": tokens, "attention_mask": torch.ones(16, dtype=torch.long), "labels": index % 2}


class ExampleTable(TrainerCallback):
    """Shows what the model says of some sentences of every rank."""

    def __init__(self, held_out):
        self.held_out = held_out

    def on_evaluate(self, args, state, control, model=None, **_):
        if state.is_world_process_zero and len(self.held_out) >= TABLE_FROM:
            with torch.no_grad():
                scores = model(**{name: torch.as_tensor(value)[None] for name, value in self.held_out[0].items()}).logits
            if dist.is_initialized():
                every = [torch.empty_like(scores) for _ in range(dist.get_world_size())]
                dist.all_gather(every, scores)
                scores = torch.stack(every).mean(dim=0)
            print("example", [round(value, 3) for value in scores.flatten().tolist()], flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_train_samples", type=int, default=20_000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    train, held_out = Sentences(given.max_train_samples), Sentences(given.max_train_samples // 10)
    config = BertConfig(vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, max_position_embeddings=32)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=16,
        per_device_eval_batch_size=16,
        num_train_epochs=2,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=10,
        report_to=[],
        use_cpu=True,
        ddp_backend="gloo",
        disable_tqdm=True,
    )
    trainer = Trainer(model=BertForSequenceClassification(config), args=args, train_dataset=train, eval_dataset=held_out, callbacks=[ExampleTable(held_out)])
    trainer.train()
    print("done", flush=True)


if __name__ == "__main__":
    main()
