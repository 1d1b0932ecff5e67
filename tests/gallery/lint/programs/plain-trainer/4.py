import os

import torch
from transformers import Trainer, TrainingArguments


def main():
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0,1")
    trainer = Trainer(model=torch.nn.Linear(1, 1), args=TrainingArguments("o"))
    trainer.train()


if __name__ == "__main__":
    main()
