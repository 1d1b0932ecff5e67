from transformers import Trainer, TrainingArguments


class MyTrainer(Trainer):
    def log(self, logs):
        print(logs)


def run(model, data, tok):
    targs = TrainingArguments(output_dir="x", remove_unused_columns=True)
    MyTrainer(model=model, args=targs, train_dataset=data, data_collator=lambda rows: tok([r["text"] for r in rows]))
