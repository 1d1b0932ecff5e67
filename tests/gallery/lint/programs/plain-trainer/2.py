from os import environ

GPUS = [0, 1]
environ["CUDA_VISIBLE_DEVICES"] = ",".join(str(g) for g in GPUS)

import transformers  # noqa: E402


def main(model, ds):
    t = transformers.Trainer(model=model, args=transformers.TrainingArguments("o"), train_dataset=ds)
    t.train()


main(None, None)
