"""Options of a model's factory or configuration: which may vary, and values that fit together."""

from __future__ import annotations

import random
import re
from math import gcd
from typing import Any, Dict, List, Optional, Sequence, Tuple

Options = Dict[str, Any]

# What belongs to the data, or names a place in it: other values would need another sample.
DATA = re.compile(
    r"vocab|class(es)?$|labels?$|token|(^|_)(id|ids|idx|index|seed|pad|bos|eos|sep|cls)($|_)|(^"
    r"|_)(in|out|input|output|target|image|img|patch|pixel|frames?"
    r"|mels?|stride|padding|resolution|types?|segments?|batch|rows|bins)($|_)|inp_|nclass|n_out"
    r"|n_in$|world|rank|device|dtype|version|worker"
)
LENGTH = re.compile(
    r"max_(len|seq|pos|tgt|src)|(^|_)(length|len|positions|block_size|context|ctx|seq_len|window)"
)
COUNT = re.compile(
    r"head|layer|depth|block|group|expert|stack|repeat|kernel|_k$|^k$|top|levels?$|cycles?$"
)
RATE = re.compile(r"drop|rate|prob|(^|_)p$")
TINY = re.compile(r"eps|init|std|range|coef|jitter|lr$|learning|decay|temperature|theta|base$")
WIDE = re.compile(r"hidden|dim|size$|embd|width|ffn|inter|inner|^d_|_d$")
KERNEL = re.compile(r"kernel|conv_size|filter_size")
# Of transformers' own configurations only these: the others belong to a form of the model that the
# rest must fit.
STRUCTURE = re.compile(
    r"^(hidden_size|d_model|n_embd|dim|embed_dim|intermediate_size|d_ff|ffn_dim|n_inner"
    r"|hidden_dim|(en|de)coder_ffn_dim"
    r"|num_hidden_layers|num_layers|num_decoder_layers|n_layers?|(en|de)coder_layers"
    r"|num_attention_heads|num_heads|n_heads?|(en|de)coder_attention_heads|num_key_value_heads|d_kv"
    r"|[a-z_]*dropout(_prob|_rate|_p)?|[a-z]+_pdrop|attention_bias|mlp_bias|qkv_bias|use_bias"
    r"|enable_bias)$"
)
MOST = 8


def variable(options: Options, *, library: bool) -> Options:
    """The options that may vary; `library`: the configuration's class is transformers' own."""
    if library:
        found = {
            name: value
            for name, value in options.items()
            if STRUCTURE.search(name)
            and not (value == 0 and isinstance(value, int) and value is not False)
        }
        if options.get("num_kv_heads", 1) not in (1, options.get("num_attention_heads")):
            # Falcon's keys fit some of its forms only, and stay as they are
            found.pop("num_attention_heads", None)
        return found
    return {name: value for name, value in options.items() if not DATA.search(name.lower())}


def others(name: str, value: Any, length: int) -> List[Any]:
    """The values to try, the default first. A length never falls below the batch's `length`."""
    low = name.lower()
    if isinstance(value, bool):
        return [value, not value]
    if isinstance(value, float):
        if RATE.search(low) and 0 <= value < 1:
            tried = [value, 0.0, 0.1, 0.5]
        elif TINY.search(low) or value == 0:
            tried = [value]
        else:
            tried = [value, value / 2, value * 2] if value > 1 else [value, value / 2]
    elif value < 0:
        tried = [value]
    elif LENGTH.search(low):
        tried = [
            value,
            *(
                item
                for item in (max(length, value // 2), value * 2, max(length, value - 1))
                if value >= length
            ),
        ]
    elif KERNEL.search(low):
        tried = [value, value + 2, *([value - 2] if value > 2 else [])]
    elif _is_width(name, value):
        half = value // 2 // 4 * 4 or value
        tried = [
            value,
            half,
            half - 2 if half > 4 else half,
            value // 4 // 4 * 4 or half,
            half + value // 4 // 4 * 4,
            *([value * 2, value + half] if value <= 256 else []),
        ]
    elif value <= 1 and not COUNT.search(low):
        tried = [value, 1 - value, 2]
    else:
        tried = [value, 1, 2, 3, 4, *([value // 2, value - 1] if value > 4 else [6])]
    return list(dict.fromkeys(item for item in tried if item >= 0 or item == value))


def drawn(options: Options, seed: int, count: int, length: int) -> List[Options]:
    """`count` configurations, each as its changes; the same seed gives the same ones. An option's
    values come in shuffled rounds, so that none repeats before all have come.
    """
    rounds: Dict[str, List[Any]] = {}
    for name, value in sorted(options.items()):
        draw, values = random.Random(f"{seed}:{name}"), others(name, value, length)
        order: List[Any] = []
        while len(order) < count:
            block = list(values)
            draw.shuffle(block)
            order += block
        rounds[name] = order
    found = []
    for turn in range(count):
        picked = {name: rounds[name][turn] for name in rounds}
        if turn % 3 == 2:  # some with few changes: what fails whatever else is set hides the rest
            keep = random.Random(f"{seed}:{turn}").sample(sorted(picked), max(1, len(picked) // 3))
            picked = {
                name: value if name in keep else options[name] for name, value in picked.items()
            }
        found.append(changes(fitted(picked, options), options))
    return found


def changes(picked: Options, options: Options) -> Options:
    return {
        name: value
        for name, value in picked.items()
        if value != options[name] or isinstance(value, bool) is not isinstance(options[name], bool)
    }


def fewer(changed: Options, options: Options, seed: str) -> Options:
    """Return half of the changes, made to fit again."""
    keep = random.Random(seed).sample(sorted(changed), len(changed) // 2)
    return changes(fitted({**options, **{name: changed[name] for name in keep}}, options), options)


def fitted(picked: Options, options: Options) -> Options:
    """Restore the relations that the defaults keep: widths are multiples of their heads and groups,
    and fewer are picked than there are.

    The width follows, and what a head has of it stays a multiple of four where it was, as rotary
    halves and aligned kernels need. Of channels beside a width that heads divide, the heads follow.
    """
    found = dict(picked)
    wide, narrow = _pairs(options)
    loose = _loose(wide)
    for item, count in loose:
        found[item] = max(2, found[item] // 2 * 2)
        while found[count] > 1 and found[item] % found[count]:
            found[count] -= 1
    wide = [pair for pair in wide if pair not in loose]
    # heads of keys divide heads, the best k are no more than the experts
    for item, other in narrow:
        while found[other] > 1 and (
            found[item] % found[other] if (item, other) in wide else found[item] < found[other]
        ):
            found[other] -= 1
    for width in sorted(name for name in options if _is_width(name, options[name])):
        alone = not STRUCTURE.search(width) and not any(item == width for item, _ in wide)
        # of channels no more is asked than that they are even
        step = gcd(options[width], 2 if alone else 4)
        for item, count in wide:
            if item == width:
                need = found[count] * gcd(options[width] // options[count], 4)
                step = step * need // gcd(step, need)
        found[width] = max(step, found[width] // step * step)
    return found


def _pairs(options: Options) -> Tuple[List[Tuple[str, str]], List[Tuple[str, str]]]:
    """(What is a multiple, of what) and, among the counts alone, (what is more, what is fewer)."""
    numbers = {
        name: value
        for name, value in options.items()
        if isinstance(value, int) and not isinstance(value, bool) and value > 0
    }
    counts = [
        name
        for name in numbers
        if re.search(r"head|group|kv|expert|top|^k$", name.lower())
        and "dim" not in name.lower()
        and "size" not in name.lower()
    ]
    widths = [name for name in numbers if name not in counts and _is_width(name, numbers[name])]
    divided = [name for name in counts if re.search(r"head|group", name.lower())]
    wide = [
        (item, other)
        for item in widths
        for other in divided
        if numbers[item] >= numbers[other] and numbers[item] % numbers[other] == 0
    ]
    heads = [name for name in divided if not re.search(r"kv|key_value|group", name.lower())]
    kv = [name for name in counts if re.search(r"kv|key_value|group", name.lower())]
    more = [(item, other) for item in heads for other in kv if numbers[item] % numbers[other] == 0]
    experts = [
        name for name in counts if "expert" in name.lower() and "per_tok" not in name.lower()
    ]
    top = [name for name in counts if re.search(r"top|per_tok|^k$", name.lower())]
    return [*wide, *more], [*more, *((item, other) for item in experts for other in top)]


def _loose(wide: List[Tuple[str, str]]) -> List[Tuple[str, str]]:
    """Widths under other names (channels, filters) that a count divides, probably by chance."""
    named = {count for item, count in wide if WIDE.search(item.lower())}
    return [
        (item, count)
        for item, count in wide
        if count in named and not WIDE.search(item.lower()) and not COUNT.search(item.lower())
    ]


def coupled(changed: Options, options: Options, constants: Sequence[int]) -> Optional[int]:
    """The number among `constants` that an option's default is a multiple or a divisor of, and its
    changed value is not: the factory sets it beside the option, so that the two must change
    together. None without one, and where anything but a count or a size was changed.
    """
    if not changed or not all(
        isinstance(item, int) and not isinstance(item, bool) for item in changed.values()
    ):
        return None
    for name, value in sorted(changed.items()):
        for constant in constants:
            for more, fewer, then in (
                (options[name], constant, (value, constant)),
                (constant, options[name], (constant, value)),
            ):
                if fewer > 1 and more % fewer == 0 and (not then[1] or then[0] % then[1]):
                    return constant
    return None


def undivided(options: Options) -> List[Options]:
    """Changes of one count each, after which a width is no longer a multiple of it."""
    wide, _ = _pairs(options)
    return [
        {count: value} for width, count in wide for value in (3, 5, 7) if options[width] % value
    ][:1]


def _is_width(name: str, value: Any) -> bool:
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < 2
        or any(item.search(name.lower()) for item in (COUNT, LENGTH, KERNEL))
    ):
        return False
    return value > MOST or WIDE.search(name.lower()) is not None


def nearer(value: Any, default: Any) -> List[Any]:
    """Values between an option's default and one that fails, the nearest to the default first."""
    if (
        isinstance(value, bool)
        or isinstance(default, bool)
        or not isinstance(value, int)
        or not isinstance(default, int)
    ):
        return []
    way = 1 if value > default else -1
    every = list(range(default + way, value, way))
    if len(every) <= MOST:
        return every
    return sorted(
        {default + way * max(1, abs(value - default) * part // MOST) for part in range(1, MOST)},
        key=lambda item: abs(item - default),
    )
