import itertools
import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed

from stream import PackedStream, raw_documents


def train_tokenizer():
    tok = Tokenizer(models.BPE(unk_token="<unk>"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>", "<pad>"], show_progress=False)
    tok.train_from_iterator(itertools.islice(raw_documents(1), 60), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="<unk>", pad_token="<pad>")


def main():
    torch.set_num_threads(1)
    set_seed(5)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="lm-"), use_cpu=True, ddp_backend="gloo", per_device_train_batch_size=8,
        max_steps=100000, learning_rate=5e-4, logging_steps=10, save_strategy="no", report_to=[], disable_tqdm=True,
        ddp_find_unused_parameters=False, accelerator_config={"dispatch_batches": True, "split_batches": False},
    )
    tokenizer = train_tokenizer()
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=64, n_embd=64, n_layer=2, n_head=4,
                                       bos_token_id=0, eos_token_id=0))
    Trainer(model=model, args=args, train_dataset=PackedStream(tokenizer), processing_class=tokenizer).train()


if __name__ == "__main__":
    main()
