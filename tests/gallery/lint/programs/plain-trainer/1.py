import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"

from transformers import Trainer, TrainingArguments  # noqa: E402

args = TrainingArguments("out")
Trainer(None, args).train()
