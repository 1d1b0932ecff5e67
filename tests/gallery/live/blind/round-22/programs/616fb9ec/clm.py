import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from callbacks import BackgroundSave, Pace, Progress
from documents import WORDS, Documents, collate


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=WORDS, n_positions=64, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    )
    folder = tempfile.mkdtemp(prefix="clm-")
    args = TrainingArguments(
        output_dir=folder,
        use_cpu=True,
        ddp_backend="gloo",
        ddp_timeout=1800,
        ddp_find_unused_parameters=False,
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        gradient_accumulation_steps=2,
        learning_rate=1e-3,
        max_steps=100_000,
        logging_steps=10,
        eval_strategy="steps",
        eval_steps=120,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=2,
        dataloader_persistent_workers=True,
        dataloader_prefetch_factor=4,
        remove_unused_columns=False,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=Documents(20_000, seed=1, cleaning=0.5),
        eval_dataset=Documents(640, seed=2),
        data_collator=collate,
        callbacks=[Pace(), Progress(), BackgroundSave(folder, every=100)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()


if __name__ == "__main__":
    main()
