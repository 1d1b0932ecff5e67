import os

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

from budget import TimeBudgetCallback
from corpus import Corpus


class Classifier(nn.Module):
    def __init__(self, vocab=1000, dim=48, classes=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, classes)

    def forward(self, input_ids=None, labels=None):
        logits = self.head(self.rnn(self.emb(input_ids))[0][:, -1])
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def accuracy(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    torch.set_num_threads(1)
    work_dir = os.environ["WORK_DIR"]
    args = TrainingArguments(
        output_dir=os.path.join(work_dir, "out"), use_cpu=True, ddp_backend="gloo",
        per_device_train_batch_size=8, per_device_eval_batch_size=32, num_train_epochs=50,
        logging_steps=50, save_strategy="no", report_to=[], disable_tqdm=True, seed=3)
    with args.main_process_first(desc="corpus"):
        train_set, eval_set = Corpus(work_dir, "train"), Corpus(work_dir, "eval")
        budget = TimeBudgetCallback(seconds=float(os.environ.get("TIME_BUDGET", 25)))
    trainer = Trainer(model=Classifier(), args=args, train_dataset=train_set, eval_dataset=eval_set,
                      compute_metrics=accuracy, callbacks=[budget])
    trainer.train()
    metrics = trainer.evaluate()
    if trainer.is_world_process_zero():
        print(metrics, flush=True)
    trainer.save_model()


if __name__ == "__main__":
    main()
