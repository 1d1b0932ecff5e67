"""Sound models: families of transformers with small configurations drawn by a seed, and models
that people write without it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.gallery.models.architectures import ARCHITECTURES, source

Draw = random.Random
ENCODERS = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")


class Sound(NamedTuple):
    """A program with nothing wrong: `sample` is empty where the tool makes the batch up from the
    configuration.
    """

    name: str
    program: str
    model: str
    sample: str
    needs: str


def _sizes(draw: Draw) -> tuple[int, int]:
    """Hidden size and heads: an even size of each head, of 4 to 16."""
    heads = draw.choice((1, 2, 3, 4))
    return heads * draw.choice((4, 8, 12, 16)), heads


def _plain(draw: Draw) -> dict[str, Any]:
    """The words that most configurations share."""
    hidden, heads = _sizes(draw)
    return {
        "vocab_size": draw.randint(60, 200),
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_hidden_layers": draw.randint(1, 3),
        "intermediate_size": draw.choice((24, 40, 64)),
        "max_position_embeddings": draw.choice((128, 160, 256)),
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def _grouped(draw: Draw) -> dict[str, Any]:
    words = _plain(draw)
    heads = words["num_attention_heads"]
    return {
        **words,
        "num_key_value_heads": draw.choice([one for one in (1, 2, 3, 4) if heads % one == 0]),
        "tie_word_embeddings": draw.random() < 0.5,
    }


def _gpt2(draw: Draw) -> dict[str, Any]:
    hidden, heads = _sizes(draw)
    return {
        "vocab_size": draw.randint(60, 200),
        "n_embd": hidden,
        "n_head": heads,
        "n_layer": draw.randint(1, 3),
        "n_positions": 128,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def _t5(draw: Draw) -> dict[str, Any]:
    hidden, heads = _sizes(draw)
    return {
        "vocab_size": draw.randint(60, 200),
        "d_model": hidden,
        "num_heads": heads,
        "d_kv": draw.choice((4, 8)),
        "d_ff": 40,
        "num_layers": draw.randint(1, 2),
        "feed_forward_proj": draw.choice(("relu", "gated-gelu")),
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        "eos_token_id": 1,
    }


def _bart(draw: Draw) -> dict[str, Any]:
    hidden, heads = _sizes(draw)
    return {
        "vocab_size": draw.randint(60, 200),
        "d_model": hidden,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_layers": draw.randint(1, 2),
        "decoder_layers": draw.randint(1, 2),
        "encoder_ffn_dim": 40,
        "decoder_ffn_dim": 32,
        "max_position_embeddings": 128,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": None,
    }


def _vit(draw: Draw) -> dict[str, Any]:
    words = _plain(draw)
    kept = {
        key: words[key]
        for key in ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size")
    }
    return {
        **kept,
        "image_size": draw.choice((16, 32)),
        "patch_size": 8,
        "num_channels": draw.choice((1, 3)),
        "num_labels": 5,
    }


def _distilbert(draw: Draw) -> dict[str, Any]:
    hidden, heads = _sizes(draw)
    return {
        "vocab_size": draw.randint(60, 200),
        "dim": hidden,
        "n_heads": heads,
        "n_layers": draw.randint(1, 3),
        "hidden_dim": 48,
        "max_position_embeddings": 128,
        "sinusoidal_pos_embds": draw.random() < 0.5,
        "pad_token_id": 0,
    }


def _opt(draw: Draw) -> dict[str, Any]:
    words = _plain(draw)
    return {
        **{key: value for key, value in words.items() if key != "intermediate_size"},
        "ffn_dim": 48,
        "word_embed_proj_dim": words["hidden_size"],
        "pad_token_id": 1,
    }


def _falcon(draw: Draw) -> dict[str, Any]:
    words = _plain(draw)
    style = draw.choice(
        (
            {"multi_query": True},
            {"new_decoder_architecture": True, "num_kv_heads": 1},
            {"alibi": True, "multi_query": False},
        )
    )
    return {
        **{key: value for key, value in words.items() if key != "intermediate_size"},
        "ffn_hidden_size": 48,
        **style,
    }


def _bloom(draw: Draw) -> dict[str, Any]:
    hidden, heads = _sizes(draw)
    return {
        "vocab_size": draw.randint(60, 200),
        "hidden_size": hidden,
        "n_head": heads,
        "n_layer": draw.randint(1, 3),
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 3,
    }


def _roberta(draw: Draw) -> dict[str, Any]:
    return {**_plain(draw), "pad_token_id": 1, "bos_token_id": 0}


def _with(make: Callable[[Draw], dict[str, Any]], **more: Any) -> Callable[[Draw], dict[str, Any]]:
    return lambda draw: {**make(draw), **more}


# family: the prefix of its classes, the models that may be drawn, the words of its configuration
FAMILIES: Mapping[str, tuple[str, tuple[str, ...], Callable[[Draw], dict[str, Any]]]] = {
    "bert": ("Bert", ENCODERS, _plain),
    "roberta": ("Roberta", ENCODERS, _roberta),
    "electra": ("Electra", ENCODERS, _with(_plain, embedding_size=16)),
    "albert": ("Albert", ENCODERS, _with(_plain, embedding_size=16)),
    "distilbert": ("DistilBert", ENCODERS, _distilbert),
    "mpnet": ("MPNet", ENCODERS, _roberta),
    "deberta-v2": (
        "DebertaV2",
        ENCODERS,
        _with(
            _plain,
            relative_attention=True,
            position_biased_input=False,
            pos_att_type=["p2c", "c2p"],
        ),
    ),
    "gpt2": ("GPT2", ("LMHeadModel", "ForSequenceClassification"), _with(_gpt2, pad_token_id=0)),
    "gpt-neox": ("GPTNeoX", ("ForCausalLM",), _plain),
    "opt": ("OPT", ("ForCausalLM",), _opt),
    "bloom": ("Bloom", ("ForCausalLM",), _bloom),
    "falcon": ("Falcon", ("ForCausalLM",), _falcon),
    "llama": ("Llama", ("ForCausalLM", "ForSequenceClassification"), _grouped),
    "mistral": ("Mistral", ("ForCausalLM",), _with(_grouped, sliding_window=8)),
    "qwen2": ("Qwen2", ("ForCausalLM",), _grouped),
    "gemma": ("Gemma", ("ForCausalLM",), _with(_grouped, head_dim=8)),
    "mixtral": (
        "Mixtral",
        ("ForCausalLM",),
        _with(_grouped, num_local_experts=4, num_experts_per_tok=2),
    ),
    "t5": ("T5", ("ForConditionalGeneration",), _t5),
    "bart": ("Bart", ("ForConditionalGeneration",), _bart),
    "vit": ("ViT", ("ForImageClassification",), _vit),
}
OTHERS = {
    "plain_transformer": ("make", "sample", ""),
    "small_cnn": ("make", "sample", ""),
    "experts": ("make", "sample", ""),
    "regressor": ("make", "sample", "lightning"),
    "speech": ("make", "sample", ""),
    "autoencoder": ("make", "sample", ""),
}


def of_family(family: str, seed: int) -> Sound:
    """One model of the family, as `seed` draws it."""
    prefix, models, words = FAMILIES[family]
    draw = random.Random(f"{family} {seed}")
    model = f"{prefix}{draw.choice(models)}"
    said = "".join(f"        {key}={value!r},\n" for key, value in words(draw).items())
    program = (
        f"from transformers import {prefix}Config, {model}\n\n\ndef make():\n    config ="
        f" {prefix}Config(\n{said}    )\n    return {model}(config)\n"
    )
    return Sound(f"{family} {seed}", program, "make", "", "transformers")


def sound(seed: int) -> list[Sound]:
    """All sound models; the families are drawn anew for each seed."""
    found = [of_family(family, seed) for family in FAMILIES]
    for name, (model, sample, needs) in OTHERS.items():
        found.append(Sound(name, source(name), model, sample, needs))
    for name, one in ARCHITECTURES.items():
        found.append(Sound(name, source(name), one.model, one.sample, one.needs))
    return found
