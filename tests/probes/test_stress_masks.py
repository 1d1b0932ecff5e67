"""The suite on masks: each fault of a small model is found under its name, and a sound model
draws none.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.probes.stress_runs import Wrote, wrote

pytestmark = pytest.mark.torch

SOURCE = (Path(__file__).parent / "data" / "masked_models.py.txt").read_text(encoding="utf-8")
FAULTS = {
    "deaf": ("mask.ignored", "module", "blocks.1.attention"),
    "faint": ("mask.ignored", "module", "blocks.1.attention"),
    "not_passed_on": ("mask.ignored", "module", "blocks.1"),
    "never_passed_on": ("mask.ignored", "module", "Net"),
    "deaf_causal": ("mask.ignored", "module", "blocks.1.attention"),
    "first_row": ("mask.padding", "module", "blocks.1.attention"),
    "kept_first_row:kept": ("mask.padding", "module", "blocks.1.attention"),
    "bool_turned": ("mask.form", "module", "blocks.1.attention"),
    "infinite": ("mask.all_masked", "module", "blocks.1.attention"),
    "one_late": ("mask.future", "module", "blocks.1.attention"),
    "open_ahead": ("mask.future", "module", "blocks.1.attention"),
    "all_labels": ("mask.loss", "loss", "labels"),
    "mean_of_all:masked_only": ("mask.ignored", "module", "pool"),
    "one_left_out:masked_only": ("mask.ignored", "module", "layers.1"),
}
SOUND = (
    "sound",
    "sound_causal",
    "sound_pooled:masked_only",
    "layers:masked_only",
    "Attends:words",
    "Tagger:words",
    "tagger_without:words",
    "Translates:both_sides",
    "Kept:kept",
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wrote]:
    pytest.importorskip("torch")
    return wrote(
        "masks",
        tmp_path_factory.mktemp("models"),
        "Noisy",
        "Smoother:frames",
        *SOUND,
        *FAULTS,
        source=SOURCE,
    )


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_alone_and_by_its_name(name: str, found: dict[str, Wrote]) -> None:
    assert found[name].findings == [FAULTS[name]], found[name].rows


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_model_draws_no_finding(name: str, found: dict[str, Wrote]) -> None:
    assert found[name].findings == []


def test_a_model_to_which_no_question_applies_is_skipped(found: dict[str, Wrote]) -> None:
    assert "it takes no mask" in found["Smoother:frames"].says("skipped")
    assert not [row for row in found["Smoother:frames"].rows if row["row"] in ("held", "summary")]


def test_all_checks_are_made_of_a_sound_model(found: dict[str, Wrote]) -> None:
    held = {row["name"] for row in found["sound_causal"].rows if row["row"] == "held"}
    assert held == {
        "mask.finite",
        "mask.ignored",
        "mask.padding",
        "mask.loss",
        "mask.form",
        "mask.all_masked",
        "mask.future",
    }
    assert "The mask is attention_mask (1 counts, 2-D)." in found["sound_causal"].says("note")


def test_the_polarity_is_measured_where_no_name_and_no_sample_tells_it(
    found: dict[str, Wrote],
) -> None:
    assert "The mask is padding_mask (0 counts, 2-D)." in found["Attends:words"].says("note")
    assert "The mask is mask (1 counts, 2-D)." in found["Tagger:words"].says("note")
    assert "The mask is keep (1 counts, 2-D)." in found["Kept:kept"].says("note")


def test_what_is_torch_s_own_or_promised_by_nobody_is_a_note(found: dict[str, Wrote]) -> None:
    assert "in torch's own attention" in found["Attends:words"].says("note")
    assert "mask changes nothing in the outputs" in found["tagger_without:words"].says("note")


def test_a_noisy_model_is_not_compared(found: dict[str, Wrote]) -> None:
    assert found["Noisy"].findings == []
    assert not [row for row in found["Noisy"].rows if row["row"] == "held"]


FAMILIES = """
import torch
import transformers
S = dict(vocab_size=99, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
E = dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=40)
def make(config, model, **options):
    return lambda: getattr(transformers, model)(getattr(transformers, config)(**options))
bert, roberta = make("BertConfig", "BertForMaskedLM", **S), make("RobertaConfig", "RobertaForMaskedLM", **S)
albert, electra = make("AlbertConfig", "AlbertForMaskedLM", embedding_size=16, **S), make("ElectraConfig", "ElectraForMaskedLM", embedding_size=16, **S)
gpt2 = make("GPT2Config", "GPT2LMHeadModel", vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)
llama = make("LlamaConfig", "LlamaForCausalLM", num_key_value_heads=2, tie_word_embeddings=True, **S)
mistral = make("MistralConfig", "MistralForCausalLM", num_key_value_heads=2, sliding_window=5, **S)
qwen2 = make("Qwen2Config", "Qwen2ForCausalLM", num_key_value_heads=2, **S)
gemma2 = make("Gemma2Config", "Gemma2ForCausalLM", num_key_value_heads=2, head_dim=8, **S)
t5 = make("T5Config", "T5ForConditionalGeneration", vocab_size=99, d_model=32, d_kv=8, d_ff=40, num_layers=2, num_heads=4, decoder_start_token_id=0)
bart = make("BartConfig", "BartForConditionalGeneration", decoder_ffn_dim=40, max_position_embeddings=64, **E)
distilbert = make("DistilBertConfig", "DistilBertForMaskedLM", vocab_size=99, dim=32, hidden_dim=40, n_layers=2, n_heads=4, max_position_embeddings=64)
bloom = make("BloomConfig", "BloomForCausalLM", vocab_size=99, hidden_size=32, n_layer=2, n_head=4)
mpnet, xlnet = make("MPNetConfig", "MPNetForMaskedLM", **S), make("XLNetConfig", "XLNetLMHeadModel", vocab_size=99, d_model=32, n_layer=2, n_head=4, d_inner=40)
mixtral = make("MixtralConfig", "MixtralForCausalLM", num_key_value_heads=2, num_local_experts=4, output_router_logits=True, **S)
convbert, fnet = make("ConvBertConfig", "ConvBertForMaskedLM", embedding_size=32, **S), make("FNetConfig", "FNetForMaskedLM", **S)

def deaf_bert():
    model = bert()
    attention = model.bert.encoder.layer[1].attention.self
    forward = attention.forward
    attention.forward = lambda states, attention_mask=None, *rest, **more: forward(states, None, *rest, **more)
    return model

def open_bart():
    model = bart()
    attention = model.model.decoder.layers[1].self_attn
    forward, attention.is_causal = attention.forward, False
    attention.forward = lambda *rest, attention_mask=None, **more: forward(*rest, attention_mask=None, **more)
    return model

class Untied(transformers.LlamaForCausalLM):
    def tie_weights(self, *rest, **more):
        pass

def untied_llama():
    return Untied(llama().config)
"""
SOUND_FAMILIES = (
    *(
        "bert",
        "roberta",
        "albert",
        "electra",
        "gpt2",
        "llama",
        "mistral",
        "qwen2",
        "gemma2",
        "t5",
        "bart",
        "distilbert",
        "bloom",
        "mpnet",
        "xlnet",
        "mixtral",
    ),
    *("convbert", "fnet"),
)


@pytest.mark.soak
@pytest.mark.parametrize("suite", ["masks", "tying"])
def test_families_of_transformers_draw_no_finding(suite: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    found = wrote(suite, tmp_path, *(f"{name}:-" for name in SOUND_FAMILIES), source=FAMILIES)
    assert {name: one.findings for name, one in found.items() if one.findings} == {}
    assert sum(any(row["row"] == "held" for row in one.rows) for one in found.values()) >= 12


@pytest.mark.soak
def test_one_faulty_layer_of_a_family_is_named(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    found = wrote("masks", tmp_path, "deaf_bert:-", "open_bart:-", source=FAMILIES)
    assert found["deaf_bert:-"].findings == [
        ("mask.ignored", "module", "bert.encoder.layer.1.attention.self")
    ]
    assert found["open_bart:-"].findings == [
        ("mask.future", "module", "model.decoder.layers.1.self_attn")
    ]


@pytest.mark.soak
def test_a_family_that_is_not_tied_as_its_configuration_says_is_named(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    found = wrote("tying", tmp_path, "untied_llama:-", source=FAMILIES)
    assert found["untied_llama:-"].findings == [("tied.init", "parameter", "lm_head.weight")]
