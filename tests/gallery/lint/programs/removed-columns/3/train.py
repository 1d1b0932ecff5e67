from collators import AudioCollator
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments


class Run:
    def __init__(self, processor):
        self.collator = AudioCollator(processor)
        self.args = Seq2SeqTrainingArguments("out", per_device_train_batch_size=4)

    def go(self, model, ds):
        Seq2SeqTrainer(model=model, args=self.args, train_dataset=ds, data_collator=self.collator).train()
