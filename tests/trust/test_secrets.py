"""None of the secrets in the lists can be read in a case, a report, a page or on the terminal, and
what only looks like one stays.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trust.forms import read_forms
from tests.trust.live import attached
from tests.trust.measure import LISTS, measured
from trainprobe.redact import Redactor, clean

# Nothing beside these tells that they are secret: the place in a command of `mc`, the head of a
# column three lines above, a second value of one name. An index is none. docs/security.md names
# them.
OPEN = {
    "secrets_second.txt": {"mc alias", "csv row header", "hocon"},
    "secrets_third.txt": {"algolia key"},
}


@pytest.mark.parametrize("name", LISTS)
def test_explain_shows_no_secret_and_leaves_look_alikes(name: str, tmp_path: Path) -> None:
    got = measured(read_forms(name, 1), tmp_path)
    assert set(got.leaked) == OPEN.get(name, set()), got.leaked
    assert (got.harmed, got.unseen) == ([], [])


@pytest.mark.slow
def test_attach_shows_no_secret_of_a_live_job(tmp_path: Path) -> None:
    forms = read_forms("secrets_in_use.txt", 2)
    got = attached(forms, tmp_path / "job")
    assert {form.name: where for form in forms if (where := got.holding(form))} == {}
    assert "train_0.py" in got.places["case/evidence.jsonl"]


@pytest.mark.parametrize("seed", range(3, 9))
def test_each_draw_of_a_form_is_hidden(seed: int) -> None:
    for name in LISTS:
        for form in read_forms(name, seed):
            shown, _ = Redactor({}).text(clean(form.text))
            if form.secrets:
                assert not form.leaks_into(shown) or form.name in OPEN.get(name, ()), form.name
            else:
                assert shown == clean(form.text)


@pytest.mark.parametrize(
    "lines",
    [
        ["the token is hf_" + "aB3dE5gH7jK9mN1pQ", "2026-05-17 12:30:59,124 INFO step 4"],
        ["x" * 80 + " worker12", "step12 loss 3.2"],
        ["password:", "- required"],
        ["Missing key:", "  transformer.h.0.attn.bias"],
        ["tokens: |", "  one two three"],
    ],
)
def test_the_next_line_stays_where_it_is_no_part_of_a_secret(lines: list[str]) -> None:
    assert Redactor({}).lines(lines) == lines


def test_what_was_learned_from_a_cut_text_hides_the_whole() -> None:
    redactor = Redactor({"SVC_TOKEN": "eyJhbGciOiJIUzI1NiJ9"})
    whole = "eyJhbGciOiJIUzI1NiJ9.eyJdyY7TqWKprOQefuMNFA2.RiXtNrUhV4hfsPrshQ04y9"
    assert redactor.text(f"at {whole} next") == ("at <hidden:SVC_TOKEN> next", 1)
    assert redactor.text(f"{whole[:20]}@host.log")[0] == "<hidden:SVC_TOKEN>@host.log"


def test_lines_of_two_ranks_are_told_apart_by_what_stands_before_them() -> None:
    lines = [
        "[rank0]: 2026-05-17 12:30:59,123 INFO api_key:",
        "[rank0]: 2026-05-17 12:31:00,001 INFO   swordfish77",
        "[rank0]: 2026-05-17 12:31:00,002 INFO lr: 3",
    ]
    assert Redactor({}).lines(lines) == [
        lines[0],
        "[rank0]: 2026-05-17 12:31:00,001 INFO   <hidden:api_key>",
        lines[2],
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("HF_TOKEN_PROD=abc123def", "HF_TOKEN_PROD=<hidden:HF_TOKEN_PROD>"),
        (
            "- name: DB_PASSWORD\n  value: horse7",
            "- name: DB_PASSWORD\n  value: <hidden:DB_PASSWORD>",
        ),
        ('if (token != "abc123def") {', 'if (token != "<hidden:token>") {'),
        ('if (auth == "kerberos") {', 'if (auth == "kerberos") {'),
        ("pyjwt==2.10.1 secretstorage==3.3.3", "pyjwt==2.10.1 secretstorage==3.3.3"),
        ("- name: wandb-secret\n  value: true", "- name: wandb-secret\n  value: true"),
        ("sentry_release = 0123456789abcdef0123456789abcdef01234567",) * 2,
        ("at newco_x7Kq2LmZ9pT4bVw8Rn3Jd6Yc5Hf1 now", "at <hidden:token> now"),
        ("at run_x7Kq2LmZ9pT4bVw8Rn3Jd6Yc5Hf1 now",) * 2,
        ("at chatcmpl-x7Kq2LmZ9pT4bVw8Rn3Jd6Yc5Hf1aB2c now",) * 2,
        ("at triton_poi_fused_add_mul_relu_threshold_backward_12 now",) * 2,
        ("SecretStr('Ember-opal4711')", "SecretStr('<hidden:secret>')"),
        ("SecretStr('**********') Token('LPAREN_OPEN')",) * 2,
        ("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJ4",) * 2,
        ("k wCqT9Lm2xZ\\nQw8Rn3Jd6Yc=\\n-----END PRIVATE KEY-----", "k <hidden:private-key>"),
        ("mapbox-gl-js-2024-05-17-build-12", "mapbox-gl-js-2024-05-17-build-12"),
    ],
)
def test_names_signs_and_lines_around_a_value(text: str, shown: str) -> None:
    assert Redactor({}).text(text)[0] == shown


@pytest.mark.parametrize(
    "unit", ["api_key:\n", "a\\\n", "  token: |\n", "x" * 79 + "1\n", "Ab1+" * 16 + "\n"]
)
def test_many_lines_cost_no_more_than_their_number(unit: str) -> None:
    calls = 0

    def counted(text: str) -> str:
        nonlocal calls
        calls += len(text)
        return text

    from trainprobe.secret_lines import MOST_LINES, hide_over_lines

    lines = (unit * 2000).split("\n")
    hide_over_lines(lines, counted)
    assert calls <= len(lines) * (MOST_LINES + 2 * 200 + len(unit))
