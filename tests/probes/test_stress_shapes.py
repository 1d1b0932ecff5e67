"""The suite on shapes: each fault of a small model is found under its name, and a sound model
draws none.
"""

from __future__ import annotations

import pytest

from tests.probes.stress_runs import Wrote, wrote

pytestmark = pytest.mark.torch

FAULTS = {
    "one_too_far": ("shape.limit", "attribute", "max_len"),
    "last_twice": ("shape.limit", "attribute", "max_len"),
    "even_only": ("shape.raises", "size", "2x31"),
    "over_rows": ("shape.rows_mixed", "module", "blocks.0.attention"),
    "squeezed": ("shape.output", "size", "1x1"),
    "divided_twice": ("shape.loss", "loss", "4x7"),
    "first_rows": ("shape.loss", "loss", "row 2"),
    "first_positions": ("shape.loss", "loss", "1x63"),
    "root_of_zero": ("gradient.not_finite", "module", "blocks.1"),
    "half_where_shared": ("shape.sharing_loss", "parameter", "tokens.weight"),
    "detached_where_shared": ("shape.sharing_gradient", "parameter", "tokens.weight"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wrote]:
    pytest.importorskip("torch")
    return wrote(
        "shapes", tmp_path_factory.mktemp("models"), "sound", "normed:normed_sample", *FAULTS
    )


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_alone_and_by_its_name(name: str, found: dict[str, Wrote]) -> None:
    assert found[name].findings == [FAULTS[name]], found[name].rows


def test_a_sound_model_draws_no_finding(found: dict[str, Wrote]) -> None:
    sound = found["sound"]
    assert sound.findings == []
    held = {row["name"] for row in sound.rows if row["row"] == "held"}
    assert {
        "gradient.not_finite",
        "shape.rows_mixed",
        "shape.sharing_loss",
        "shape.sharing_gradient",
        "shape.limit",
    } <= held
    assert "9 sizes up to 2x64" in sound.says("summary")


def test_what_raises_names_the_module_and_the_sizes(found: dict[str, Wrote]) -> None:
    row = found["even_only"].finding()
    assert row["labels"]["module"] == "blocks.0.attention"
    assert row["labels"]["sizes"] == "2x31, 1x63"
    assert row["frames"][-1]["function"] == "forward"


def test_a_limit_says_what_goes_and_what_is_declared(found: dict[str, Wrote]) -> None:
    labels = found["one_too_far"].finding()["labels"]
    assert (labels["declared"], labels["longest"], labels["length"], labels["module"]) == (
        64,
        63,
        64,
        "positions",
    )


def test_batch_statistics_of_one_row_are_a_note(found: dict[str, Wrote]) -> None:
    normed = found["normed:normed_sample"]
    assert normed.findings == []
    assert "drop_last=True" in normed.says("note")


FAMILIES = """
import importlib
T = importlib.import_module("transformers")
SMALL = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=128)


def _made(model, config, **options):
    return lambda: getattr(T, model)(getattr(T, config)(**options))


bert = _made("BertForMaskedLM", "BertConfig", **SMALL)
roberta = _made("RobertaForTokenClassification", "RobertaConfig", **SMALL)
electra = _made("ElectraForMaskedLM", "ElectraConfig", embedding_size=16, **SMALL)
albert = _made("AlbertForMaskedLM", "AlbertConfig", embedding_size=16, **SMALL)
mpnet = _made("MPNetForMaskedLM", "MPNetConfig", **SMALL)
deberta = _made("DebertaV2ForMaskedLM", "DebertaV2Config", relative_attention=True, pos_att_type=["c2p", "p2c"], **SMALL)
llama = _made("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, **SMALL)
mistral = _made("MistralForCausalLM", "MistralConfig", num_key_value_heads=2, sliding_window=16, **SMALL)
qwen2 = _made("Qwen2ForCausalLM", "Qwen2Config", num_key_value_heads=2, **SMALL)
mixtral = _made("MixtralForCausalLM", "MixtralConfig", num_key_value_heads=2, num_local_experts=4, **SMALL)
neox = _made("GPTNeoXForCausalLM", "GPTNeoXConfig", **SMALL)
gpt2 = _made("GPT2LMHeadModel", "GPT2Config", vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=128)
bloom = _made("BloomForCausalLM", "BloomConfig", vocab_size=99, hidden_size=32, n_layer=2, n_head=4)
t5 = _made("T5ForConditionalGeneration", "T5Config", vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)
vit = _made("ViTForImageClassification", "ViTConfig", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8)
"""
NAMES = (
    "bert",
    "roberta",
    "electra",
    "albert",
    "mpnet",
    "deberta",
    "llama",
    "mistral",
    "qwen2",
    "mixtral",
    "neox",
    "gpt2",
    "bloom",
    "t5",
    "vit",
)


@pytest.mark.soak
@pytest.mark.parametrize("suite", ["shapes", "fuzz"])
def test_families_of_transformers_draw_no_finding(
    suite: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    found = wrote(
        suite,
        tmp_path_factory.mktemp("families"),
        *(f"{name}:-" for name in NAMES),
        fuzz=30,
        source=FAMILIES,
    )
    assert {name: one.findings for name, one in found.items() if one.findings} == {}
    assert len(found) == len(NAMES)
    for name, one in found.items():
        assert one.says("summary"), name
