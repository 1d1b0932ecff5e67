import transformers as hf


class Collator:
    def __call__(self, features):
        return {"texts": [f["caption"] for f in features]}


def main(model, ds):
    conf = {"output_dir": "o", "num_train_epochs": 1}
    args = hf.TrainingArguments(**conf)
    t = hf.Trainer(model, args, Collator(), ds)
    t.train()
