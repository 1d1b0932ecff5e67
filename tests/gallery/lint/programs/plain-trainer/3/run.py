import os

from settings import VISIBLE

os.environ.update(CUDA_VISIBLE_DEVICES=VISIBLE)
from transformers import Seq2SeqTrainer  # noqa: E402


class Fit:
    def start(self, model):
        self.trainer = Seq2SeqTrainer(model=model)
        self.trainer.train()


Fit().start(None)
