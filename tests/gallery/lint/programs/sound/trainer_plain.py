from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments


def main(model, tok, ds):
    args = TrainingArguments("o", dataloader_num_workers=4)
    Trainer(model=model, args=args, train_dataset=ds, data_collator=DataCollatorForLanguageModeling(tok, mlm=False)).train()


if __name__ == "__main__":
    main(None, None, None)
