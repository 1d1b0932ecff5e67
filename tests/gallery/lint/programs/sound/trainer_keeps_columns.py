from transformers import Trainer, TrainingArguments


def collate(rows):
    return {"x": [r["text"] for r in rows]}


def main(model, ds):
    args = TrainingArguments("o", remove_unused_columns=False)
    Trainer(model=model, args=args, train_dataset=ds, data_collator=collate).train()


if __name__ == "__main__":
    main(None, None)
