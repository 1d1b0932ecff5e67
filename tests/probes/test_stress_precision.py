"""The suite on narrow types: each fault is found under its name, at the module whose own code it
is, and sound models stay within.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.probes.stress_runs import Wrote, wrote

pytestmark = pytest.mark.torch

MODELS = (Path(__file__).resolve().parent / "data" / "narrow_models.py.txt").read_text()
FAULTS = {
    "unscaled": ("precision.overflow", "module", "blocks.1.attention"),
    "exponent": ("precision.overflow", "module", "blocks.1.attention"),
    "norm": ("precision.overflow", "module", "blocks.1.first"),
    "loss": ("precision.overflow", "module", "Model"),
    "billion": ("precision.raises", "module", "blocks.1.attention"),
    "table": ("precision.raises", "module", "positions"),
    "softmax_down": ("precision.tolerance", "module", "blocks.1.attention"),
    "half": ("precision.tolerance", "module", "blocks.1.attention"),
    "complex": ("precision.tolerance", "module", "positions"),
    "running_sum": ("precision.tolerance", "module", "mean"),
    "gradient": ("precision.gradient", "parameter", "blocks.0.attention.q.weight"),
}
FAMILIES = """
import torch, transformers as T

S = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=128)
OF_T5 = dict(vocab_size=99, d_model=32, d_ff=64, num_layers=2, num_heads=4, d_kv=8, decoder_start_token_id=0)
OF_BART = dict(vocab_size=99, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
            decoder_ffn_dim=64, max_position_embeddings=128)
PARTS = dict(relative_attention=True, pos_att_type=["c2p", "p2c"])
MADE = {
    "Bert": ("BertForMaskedLM", S), "GPT2": ("GPT2LMHeadModel", dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=128)),
    "Llama": ("LlamaForCausalLM", S), "Qwen2": ("Qwen2ForCausalLM", {**S, "num_key_value_heads": 2}), "Gemma": ("GemmaForCausalLM", {**S, "head_dim": 8, "num_key_value_heads": 4}),
    "T5": ("T5ForConditionalGeneration", OF_T5), "Bart": ("BartForConditionalGeneration", OF_BART), "Albert": ("AlbertForMaskedLM", {**S, "embedding_size": 16}),
    "ViT": ("ViTForImageClassification", {**S, "image_size": 32, "patch_size": 8}), "Bloom": ("BloomForCausalLM", dict(vocab_size=99, hidden_size=32, n_layer=2, n_head=4)),
    "Deberta": ("DebertaForMaskedLM", {**S, **PARTS}), "Mixtral": ("MixtralForCausalLM", {**S, "num_key_value_heads": 2, "num_local_experts": 4}),
    "GPTNeoX": ("GPTNeoXForCausalLM", S),
}

def __getattr__(name):
    if name not in MADE:
        raise AttributeError(name)
    kind, options = MADE[name]
    return lambda: getattr(T, kind)(getattr(T, name + "Config")(**{key: value for key, value in options.items()}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wrote]:
    pytest.importorskip("torch")
    return wrote(
        "precision", tmp_path_factory.mktemp("models"), "sound", "noise", *FAULTS, source=MODELS
    )


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_alone_and_where_it_is(name: str, found: dict[str, Wrote]) -> None:
    assert found[name].findings == [FAULTS[name]], found[name].rows


def test_a_sound_model_is_tried_in_all_types(found: dict[str, Wrote]) -> None:
    assert found["sound"].findings == []
    assert (
        found["sound"]
        .says("summary")
        .startswith(
            "autocast float16, autocast bfloat16, float16, bfloat16 against float32 at 2x32, 30"
            " modules by themselves"
        )
    )
    losses = [
        row["value"]
        for row in found["sound"].rows
        if row["row"] == "number" and row["name"] == "precision.loss"
    ]
    assert len(losses) == 8  # four types, the weights as built and stirred
    assert 0 < max(losses) < 0.01


def test_what_raises_keeps_its_frames(found: dict[str, Wrote]) -> None:
    row = found["billion"].finding()
    assert row["frames"][-1]["function"] == "forward"
    assert row["labels"]["mode"] == "autocast float16"


def test_an_imaginary_part_is_lost_by_the_cast_to_a_half_type_alone(
    found: dict[str, Wrote],
) -> None:
    row = found["complex"].finding()
    assert row["labels"]["mode"] == "float16"
    assert "drops the imaginary part of its turns" in row["says"]


def test_noise_is_named_and_modules_of_a_noisy_model_are_not_compared(
    found: dict[str, Wrote],
) -> None:
    assert found["noise"].findings == []
    first = [
        (row["name"], row["what"], row["where"])
        for row in found["noise"].rows
        if row["row"] == "first look" and not row["fine"]
    ]
    assert first == [("evaluation.difference", "module", "blocks.1.attention")]
    assert "noisy" in found["noise"].says("note")


@pytest.mark.soak
def test_families_of_transformers_stay_within(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    names = (
        "Bert",
        "GPT2",
        "Llama",
        "Qwen2",
        "Gemma",
        "T5",
        "Bart",
        "Albert",
        "ViT",
        "Bloom",
        "Deberta",
        "Mixtral",
        "GPTNeoX",
    )
    found = wrote("precision", tmp_path, *(f"{name}:-" for name in names), source=FAMILIES)
    assert {name: one.findings for name, one in found.items() if one.findings} == {}
    assert all("modules by themselves" in one.says("summary") for one in found.values())


CONVOLUTIONS = """
import torch
from torch import nn

def block(wide, wider, stride):
    return [nn.Conv2d(wide, wider, 3, stride, 1, bias=False), nn.BatchNorm2d(wider), nn.SiLU()]

class Deep(nn.Sequential):
    def __init__(self, loud):
        super().__init__(
            *block(3, 16, 2), *block(16, 32, 2), *block(32, 64, 2), *block(64, 128, 2),
            *[layer for _ in range(24) for layer in block(128, 128, 1)],
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10),
        )
        self.loud = loud

    def forward(self, pictures):
        logits = super().forward(pictures).float()
        return {"loss": (self.loud * logits).pow(2).mean(), "logits": logits}

def deep():
    return Deep(1.0)

def loud():
    return Deep(1e3)

def batch():
    return torch.randn(2, 3, 32, 32)
"""


def test_deep_convolutions_stay_within_whatever_the_size_of_their_loss(tmp_path: Path) -> None:
    """Norms at single pixels have the statistics of what is judged, and a scaler lowers a loss."""
    found = wrote("precision", tmp_path, "deep:batch", "loud:batch", source=CONVOLUTIONS)
    assert {name: one.findings for name, one in found.items() if one.findings} == {}
    assert all("modules by themselves" in one.says("summary") for one in found.values())
