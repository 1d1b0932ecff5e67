import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator

from monitor import WeightMonitor


class Chunks(Dataset):
    def __init__(self, n=200000, seq_len=48, vocab=2000):
        self.n, self.seq_len, self.vocab = n, seq_len, vocab

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        start = torch.randint(0, self.vocab, (1,), generator=g)
        ids = (start + torch.arange(self.seq_len) * 13) % self.vocab
        return {"input_ids": ids, "labels": ids.clone()}


def main():
    torch.set_num_threads(1)
    config = GPT2Config(vocab_size=2000, n_positions=64, n_embd=128, n_layer=4, n_head=4)
    model = GPT2LMHeadModel(config)
    args = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=4,
        max_steps=20000,
        learning_rate=5e-4,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        ddp_backend="gloo",
        dataloader_num_workers=0,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=Chunks(),
        data_collator=default_data_collator,
        callbacks=[WeightMonitor(args.output_dir)],
    )
    trainer.train()


if __name__ == "__main__":
    main()
