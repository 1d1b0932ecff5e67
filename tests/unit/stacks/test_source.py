"""The blocks around a line, by ast."""

from __future__ import annotations

import ast
import sys
import textwrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainprobe.stacks import source
from trainprobe.stacks.source import Place, read_places


def place_of(text: str, mark: str = "HERE") -> Place:
    """The place of the line that holds `mark`."""
    text = textwrap.dedent(text)
    line = next(number for number, row in enumerate(text.split("\n"), 1) if mark in row)
    (found,) = read_places(text, [line]).places
    return found


def blocks_of(text: str) -> list[tuple[str, str, str]]:
    return [(block.kind, block.text, block.branch) for block in place_of(text).blocks]


def test_elif_and_else_tell_which_conditions_did_not_hold() -> None:
    text = """
    if rank == 0:
        a()
    elif rank == 1:  # the second
        {}
    else:
        {}
    """
    first = ("if", "if rank == 0:", "orelse")
    assert blocks_of(text.format("HERE", "b()")) == [first, ("if", "elif rank == 1:", "body")]
    assert blocks_of(text.format("b()", "HERE")) == [first, ("if", "elif rank == 1:", "orelse")]


def test_a_decorator_stands_around_its_function() -> None:
    text = """
    @once
    @only_on(0,
             "save")
    def save():
        HERE
    """
    assert blocks_of(text) == [
        ("decorator", "@once", "body"),
        ("decorator", '@only_on(0, "save")', "body"),
        ("def", "def save():", "body"),
    ]


def test_loops_with_their_else() -> None:
    assert blocks_of("for a, b in pairs(x[1:]):\n    HERE\n") == [
        ("for", "for a, b in pairs(x[1:]):", "body")
    ]
    assert blocks_of("while x and y[1:\n  2]:\n    pass\nelse:\n    HERE\n") == [
        ("while", "while x and y[1: 2]:", "orelse")
    ]


def test_with_over_several_lines() -> None:
    text = """
    async def f(a, *, k=lambda: 1) -> "x:y":
        async with (
            lock as held,
            open("ä: b") as file,
        ):  # both
            # now
            HERE
    """
    assert blocks_of(text) == [
        ("def", 'async def f(a, *, k=lambda: 1) -> "x:y":', "body"),
        ("with", 'async with ( lock as held, open("ä: b") as file, ):', "body"),
    ]
    assert place_of(text).function == "f"


def test_try_in_all_its_branches() -> None:
    text = """
    try:
        {}
    except (KeyError,
            OSError) as error:
        {}
    else:
        {}
    finally:
        {}
    """
    words = ["a()", "b()", "c()", "d()"]
    found = []
    for place in range(4):
        mine = [*words]
        mine[place] = "HERE"
        found += blocks_of(text.format(*mine))
    assert found == [
        ("try", "try:", "body"),
        ("try", "except (KeyError, OSError) as error:", "handler"),
        ("try", "try:", "orelse"),
        ("try", "try:", "finally"),
    ]


def test_match_with_its_case() -> None:
    text = """
    match role:
        case "a":
            x()
        case {"b": 1} if rank > 0:
            HERE
    """
    assert blocks_of(text) == [
        ("match", "match role:", "body"),
        ("case", 'case {"b": 1} if rank > 0:', "body"),
    ]
    assert blocks_of("match a:\n    case 1: HERE\n") == [
        ("match", "match a:", "body"),
        ("case", "case 1:", "body"),
    ]


def test_a_header_is_not_inside_its_own_block() -> None:
    place = place_of("def f():\n    with HERE:\n        pass\n")
    assert (place.text, [block.kind for block in place.blocks]) == ("with HERE:", ["def"])
    assert blocks_of("@decorated(\n  HERE)\ndef f():\n    pass\n") == []
    assert place_of("@decorated(\n  HERE)\ndef f():\n    pass\n").function == "<module>"
    assert place_of("class A(HERE):\n    pass\n").text == "class A(HERE):"


def test_a_body_on_the_line_of_its_header() -> None:
    place = place_of("def f():\n    if rank == 0: HERE(1)\n")
    assert (place.text, [block.text for block in place.blocks]) == (
        "HERE(1)",
        ["def f():", "if rank == 0:"],
    )


def test_a_statement_over_several_lines_is_one_line_of_text() -> None:
    place = place_of("x = call(1,\n    HERE,\n    3)\n")
    assert (place.text, place.function, place.blocks) == ("x = call(1, HERE, 3)", "<module>", ())


def test_a_line_with_several_statements_shows_them_all() -> None:
    assert (
        place_of("for x in y:\n    t = now(); wait(t); HERE()\n").text
        == "t = now(); wait(t); HERE()"
    )


def test_methods_and_functions_inside() -> None:
    place = place_of("class A:\n    def outer(self):\n        def inner():\n            HERE\n")
    assert place.function == "inner"
    assert [(block.kind, block.line) for block in place.blocks] == [
        ("class", 1),
        ("def", 2),
        ("def", 3),
    ]


def test_blank_lines_comments_and_lines_that_are_not_there() -> None:
    found = read_places("x = 1\n# HERE\n\n", [0, -5, 2, 3, 99]).places
    assert [(place.line, place.text, place.function) for place in found] == [
        (2, "# HERE", "<module>"),
        (3, "", "<module>"),
    ]


def test_line_ends_of_other_systems_keep_the_count() -> None:
    assert read_places("a = 1\r\nif b:\r\n    c = 2\r\n", [3]).places[0].blocks[0].text == "if b:"
    assert read_places("a = '''\x0c\u2028'''\nb = 2\n", [2]).places[0].text == "b = 2"


def test_long_texts_are_cut() -> None:
    place = place_of(f"if {' or '.join(['condition'] * 500)}:\n    HERE\n")
    assert len(place.blocks[0].text) == source.TEXT_CAP
    assert place.blocks[0].text.endswith("…")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000 + ")" * 100_000,
        "-" * 500_000 + "1",
        "+".join(["1"] * 100_000),
        "a" + ".b" * 100_000,
        "f" + "()" * 100_000,
        "not " * 100_000 + "1",
        "lambda:" * 100_000 + "1",
        "if a:\n  b\n" + "elif a:\n  b\n" * 50_000,
        "x = 1\x00",
        "def f(:",
        "x" * (source.SOURCE_CAP + 1),
    ],
    ids=[
        "parentheses",
        "minus",
        "plus",
        "attributes",
        "calls",
        "not",
        "lambda",
        "elif",
        "null",
        "syntax",
        "size",
    ],
)
def test_what_the_parser_cannot_take_still_gives_the_line(text: str) -> None:
    found = read_places(text, [1])
    assert found.flaw
    (place,) = found.places
    assert len(place.text) <= source.TEXT_CAP
    assert place.blocks == ()


def test_a_long_chain_is_noticed_before_an_old_parser_meets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source, "CHAIN_CAP", 300)
    assert source._has_long_chain("x = " + "+".join(["1"] * (source.CHAIN_CAP + 2)))
    assert source._has_long_chain("(" + "\n.b" * (source.CHAIN_CAP + 2) + ")")
    # Many short statements are no chain, nor is a long text.
    assert not source._has_long_chain("a.b(c)[d]\n" * source.CHAIN_CAP)
    assert not source._has_long_chain("x = '" + "+" * (source.CHAIN_CAP * 2) + "'")


def test_warnings_about_the_jobs_source_are_not_ours(recwarn: pytest.WarningsRecorder) -> None:
    assert read_places("x = '\\d'\n", [1]).flaw == ""
    assert len(recwarn) == 0


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet="if:()x\n \t\"'\\\x00=", max_size=60),
    st.lists(st.integers(-2, 70), max_size=5),
)
def test_any_text_is_survived(text: str, lines: list[int]) -> None:
    found = read_places(text, lines)
    assert all(place.line >= 1 for place in found.places)


def test_every_statement_of_a_real_module_has_a_header_that_ends_with_a_colon() -> None:
    with open(ast.__file__, encoding="utf-8") as file:
        text = file.read()
    found: list[Any] = [
        block
        for place in read_places(text, range(1, text.count("\n") + 1)).places
        for block in place.blocks
    ]
    assert len(found) > 1000
    assert all(block.text.endswith((":", "…")) for block in found if block.kind != "decorator")
    assert sys.modules["ast"] is ast


def skips_of(text: str) -> list[tuple[str, str, int, str]]:
    return [(skip.text, skip.how, skip.loop, skip.branch) for skip in place_of(text).skips]


def test_branches_above_a_line_that_leave_a_pass_of_its_loop() -> None:
    text = """\
    for epoch in range(9):
        if epoch < first:
            continue
        for batch in loader:
            try:
                x = load(batch)
            except OSError:
                continue
            with autocast():
                if fine(x):
                    loss = model(x)
                else:
                    print("bad")
                    continue
            if not torch.isfinite(loss):
                if tries > 3:
                    return
                continue
            loss.backward()  # HERE
            if too_late():
                break
    """
    assert skips_of(text) == [
        ("if epoch < first:", "continue", 1, "body"),
        ("except OSError:", "continue", 4, "handler"),
        ("if fine(x):", "continue", 4, "orelse"),
        ("if not torch.isfinite(loss):", "continue", 4, "body"),
        ("if tries > 3:", "return", 4, "body"),
    ]


def test_a_skip_belongs_to_its_own_loop_and_function() -> None:
    text = """
    for batch in loader:
        for row in batch:
            if row is None:
                continue
        def closure():
            if batch:
                return
            HERE
        if last(batch):
            save(batch)
            {}
            continue
    """
    # the line is the closure's, and so is the return before it
    assert skips_of(text.format("pass")) == [("if batch:", "return", 6, "body")]
    assert (
        skips_of(text.replace("HERE", "pass").format("HERE")) == []
    )  # the branch that holds the line leaves the pass behind it
    assert skips_of("while wanted:\n    pass\nelse:\n    if a:\n        continue\n    HERE\n") == []


def test_a_return_before_a_line_of_the_function_skips_it() -> None:
    text = """
    def exchange(rows):
        for row in rows:
            if row is None:
                return None
        if rows.numel() == 0:
            return rows
        if debug:
            print(rows)
        out = gather(rows)  # HERE
        if late:
            return out
    """
    assert skips_of(text) == [("if rows.numel() == 0:", "return", 2, "body")]


def test_a_return_at_the_end_of_a_with_skips_it_too() -> None:
    text = """
    def files_of(path):
        if os.path.exists(cache):
            with open(cache) as stream:
                return pickle.load(stream)
        HERE
    """

    assert skips_of(text) == [("if os.path.exists(cache):", "return", 2, "body")]


def test_the_ways_out_of_a_loop_below_a_line_are_its_exits() -> None:
    text = """
    def fit(loader):
        for batch in loader:
            if not batch:
                break
            HERE
            for row in batch:
                if row:
                    break
            if stopper.bad(loss):
                log(loss)
                break
            elif loss > 9:
                raise ValueError
        if loader:
            return
    """
    exits = place_of(text).exits
    assert [(one.text, one.how, one.loop) for one in exits] == [
        ("if stopper.bad(loss):", "break", 3)
    ], "not those of another loop, nor what is no way out of this one"


def test_a_line_that_sleeps_in_a_loop_tells_what_is_tried_again() -> None:
    text = """
    def post(rows):
        prepare(rows)
        while True:
            try:
                with urllib.request.urlopen(self.url(rows)) as reply:
                    return json.load(reply)
            except OSError:
                log.warning("again")
            HERE
    """
    assert place_of(text).tries == "", "it does not sleep"
    tries = place_of(text.replace("HERE", "time.sleep(2)  # HERE")).tries
    assert set(tries.split("; ")) == {
        "urllib.request.urlopen",
        "json.load",
        "log.warning",
        "self.url",
    }
    assert place_of("for x in y:\n    ask(x)\ntime.sleep(1)  # HERE\n").tries == ""


def test_only_the_nearest_skips_are_kept_and_a_long_chain_is_walked() -> None:
    chain = "".join(
        f"    {'el' if number else ''}if x == {number}:\n        continue\n" for number in range(90)
    )
    assert [skip.text for skip in place_of(f"for x in y:\n{chain}    HERE\n").skips] == [
        f"{'el' if number else ''}if x == {number}:" for number in range(90 - source.SKIPS_CAP, 90)
    ]


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("work = dist.irecv(x, src=0)\nother = 3\nwork.wait()", "dist.irecv(x, src=0)"),
        (
            "asked = [rpc.rpc_async(a, f) for a in actors]\ndone = [one.wait() for one in asked]",
            "asked; [rpc.rpc_async(a, f) for a in actors]; actors",
        ),
        (
            """
ops = [dist.P2POp(dist.irecv, x, 1)]
for one in dist.batch_isend_irecv(ops):
    one.wait()""",
            "dist.batch_isend_irecv(ops); [dist.P2POp(dist.irecv, x, 1)]",
        ),
        ("todo = []\ntodo.append(dist.isend(x, 1))\ntodo[0].wait()", "[]; dist.isend(x, 1)"),
        ("def inner():\n    work = 1\nwork.wait()", ""),
        ("loss.backward()", ""),
    ],
)
def test_how_a_function_made_what_its_line_waits_for(body: str, made: str) -> None:
    (place,) = read_places(body, [len(body.splitlines())]).places

    assert place.made == made


def test_names_that_are_given_values_together_have_their_own() -> None:
    text = """\
def evaluate(rank, size):
    first, last = rank == 0, rank == size - 1
    host, port = address()
    if last:
        barrier()
    if host:
        barrier()
"""
    by_rank, by_call = read_places(text, [5, 7]).places

    assert by_rank.blocks[-1].made == "rank == size - 1"
    assert by_call.blocks[-1].made == "address(…)"


MADE = """\
def wanted(step):
    return get_rank() == 0 and step % 10 == 0

class Trainer:
    def __init__(self, rank):
        self.writes = rank == 0

    def save(self, step):
        writer = self.writes
        if not writer:
            return
        barrier()

    def report(self, step, model=DDP(device_ids=[rank])):
        with main_process_phase("report") as active:
            if active:
                barrier()
        loss = model(step)
        if wanted(step):
            barrier()
        elif loss > 3:
            barrier()
"""


def test_a_loop_is_told_by_what_its_bounds_were_made_of() -> None:
    text = """\
def step(self, n):
    warmup = min(self.world - self.rank - 1, n)
    for i in range(warmup, n):
        self.send(i)
"""
    (sends,) = read_places(text, [4]).places

    assert sends.blocks[-1].made == "min(self.world - self.rank - 1, n)"


def test_a_condition_is_told_by_what_gave_its_names_their_values() -> None:
    saved, active, called, other = read_places(MADE, [12, 17, 20, 22]).places

    assert [skip.made for skip in saved.skips] == ["self.writes; rank == 0"]
    assert active.blocks[-1].made == "main_process_phase(…)"
    assert called.blocks[-1].made == "get_rank() == 0 and step % 10 == 0"
    # of what a call is given nothing follows for its result
    assert other.blocks[-1].made == "model(…)"
