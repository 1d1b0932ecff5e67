from transformers import Trainer, TrainingArguments


class Settings:
    workers_per_gpu = 160


def main(model, ds):
    args = TrainingArguments(
        output_dir="out",
        dataloader_num_workers=Settings.workers_per_gpu,
    )
    Trainer(model=model, args=args, train_dataset=ds).train()


if __name__ == "__main__":
    main(None, None)
