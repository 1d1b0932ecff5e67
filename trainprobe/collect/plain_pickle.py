"""A reader of pickles that hold plain data and nothing else: numbers, text, lists, tuples and dictionaries.

It is no restriction of Python's unpickler but a machine of its own that has no instruction to import, call or build anything
(the opcodes are those of CPython's Lib/pickletools.py, protocols 0 to 5). torch writes its flight recorder's dumps with twenty of them.
Memory and time are bounded: by the size of the content, by the number of containers, and by a deadline.
"""

from __future__ import annotations

import struct
import time
from typing import Any, Callable, Dict, List

CONTAINERS_CAP = 1_000_000
STACK_CAP = 1_000_000
LONG_CAP_BYTES = 32
LINE_CAP_BYTES = 4096
LOOK_AT_CLOCK_EVERY = 20_000
_UNPACK_WHOLE = {size: struct.Struct(layout).unpack_from for size, layout in ((1, "<B"), (2, "<H"), (4, "<i"), (8, "<Q"))}
_UNPACK_FLOAT = struct.Struct(">d").unpack_from
# Opcodes that would import, call or build: named so that the reason can say what the file tried.
REFUSED = {
    "c": "GLOBAL", "\x93": "STACK_GLOBAL", "R": "REDUCE", "i": "INST", "o": "OBJ", "\x81": "NEWOBJ", "\x92": "NEWOBJ_EX", "b": "BUILD",
    "\x82": "EXT1", "\x83": "EXT2", "\x84": "EXT4", "P": "PERSID", "Q": "BINPERSID", "\x97": "NEXT_BUFFER", "\x98": "READONLY_BUFFER",
}  # fmt: skip


class NotPlainError(ValueError):
    """The content is no pickle of plain data, or more than may be read. The words say which and where."""


def loads(content: bytes, *, deadline_s: float = 10.0) -> Any:
    """Return the object; NotPlainError for anything else than plain data, for a torn file, and at the deadline.

    Text that is not UTF-8 is kept with replacement marks. Bytes are read as text. Objects may be shared, and a hostile file may
    make a list that holds itself, so whoever walks the result must bound the walk.
    """
    try:
        return _Machine(content, time.monotonic() + deadline_s).run()
    except NotPlainError:
        raise
    except (IndexError, struct.error) as error:
        raise NotPlainError("it ends in the middle, or its parts do not fit together") from error
    except (TypeError, ValueError, KeyError, OverflowError, AttributeError) as error:
        raise NotPlainError(f"its parts do not fit together ({type(error).__name__})") from error


class _Machine:
    def __init__(self, content: bytes, ends: float) -> None:
        self.content, self.ends = content, ends
        self.at = 0
        self.stack: List[Any] = []
        self.marks: List[int] = []
        self.memo: Dict[int, Any] = {}
        self.containers = 0

    def run(self) -> Any:
        content, step = self.content, 0
        while True:
            code = content[self.at]
            self.at += 1
            if code == 0x2E:  # STOP
                if not self.stack:
                    raise NotPlainError("it holds nothing")
                return self.stack[-1]
            act = ACTIONS.get(code)
            if act is None:
                name = REFUSED.get(chr(code))
                raise NotPlainError(
                    f"it asks for {name} at byte {self.at - 1}, which plain data never need" if name else f"byte {self.at - 1} is no instruction of a pickle"
                )
            act(self)
            step += 1
            if step % LOOK_AT_CLOCK_EVERY == 0 and (time.monotonic() > self.ends or len(self.stack) > STACK_CAP or len(self.marks) > STACK_CAP):
                raise NotPlainError("reading it takes too long or too much memory")

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.content):
            raise NotPlainError("it ends in the middle of a value")
        self.at += count
        return self.content[self.at - count : self.at]

    def whole(self, size: int) -> int:
        number: int = _UNPACK_WHOLE[size](self.content, self.at)[0]
        self.at += size
        return number

    def line(self) -> str:
        end = self.content.find(b"\n", self.at, self.at + LINE_CAP_BYTES)
        if end < 0:
            raise NotPlainError("it ends in the middle of a line")
        text = self.content[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return text

    def text(self, size: int) -> None:
        self.stack.append(self.take(self.whole(size)).decode("utf-8", "replace"))

    def put(self, container: Any) -> None:
        self.containers += 1
        if self.containers > CONTAINERS_CAP:
            raise NotPlainError(f"it holds more than {CONTAINERS_CAP} lists and dictionaries")
        self.stack.append(container)

    def since_mark(self) -> List[Any]:
        mark = self.marks.pop()
        items = self.stack[mark:]
        del self.stack[mark:]
        return items

    def number(self, size: int) -> None:
        count = self.whole(size)
        if not 0 <= count <= LONG_CAP_BYTES:
            raise NotPlainError("it holds a number that is too large")
        self.stack.append(int.from_bytes(self.take(count), "little", signed=True))

    def remember(self, place: int) -> None:
        if len(self.memo) >= 4 * CONTAINERS_CAP:
            raise NotPlainError("it shares more values than may be kept")
        self.memo[place] = self.stack[-1]

    def read_int(self) -> None:
        words = self.line().rstrip("L")
        if len(words) > 40:
            raise NotPlainError("it holds a number that is too large")
        self.stack.append({"00": False, "01": True}[words] if words in ("00", "01") else int(words))

    def append(self) -> None:
        item = self.stack.pop()
        _list(self.stack[-1]).append(item)

    def appends(self) -> None:
        items = self.since_mark()
        _list(self.stack[-1]).extend(items)

    def set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        _dict(self.stack[-1])[_key(key)] = value

    def set_items(self) -> None:
        items = self.since_mark()
        target = _dict(self.stack[-1])
        for place in range(0, len(items), 2):
            target[_key(items[place])] = items[place + 1]

    def make_dict(self) -> None:
        items = self.since_mark()
        self.put({_key(items[place]): items[place + 1] for place in range(0, len(items), 2)})

    def small_tuple(self, count: int) -> None:
        if len(self.stack) < count:
            raise NotPlainError("its parts do not fit together")
        items = tuple(self.stack[-count:])
        del self.stack[-count:]
        self.put(items)


def _list(value: Any) -> List[Any]:
    if type(value) is not list:
        raise NotPlainError("its parts do not fit together")
    return value


def _dict(value: Any) -> Dict[Any, Any]:
    if type(value) is not dict:
        raise NotPlainError("its parts do not fit together")
    return value


def _key(value: Any) -> Any:
    """Only simple keys: hashing a nested tuple of tuples could take longer than the universe lasts."""
    if not isinstance(value, (str, int, float)) and value is not None:
        raise NotPlainError("it has a key that is neither text nor a number")
    return value


def _constant(value: Any) -> Callable[[_Machine], object]:
    return lambda machine: machine.stack.append(value)


def _float(machine: _Machine) -> None:
    machine.stack.append(_UNPACK_FLOAT(machine.content, machine.at)[0])
    machine.at += 8


def _skip(count: int) -> Callable[[_Machine], object]:
    return lambda machine: machine.take(count)


# Most of a real dump is made of the first ten.
ACTIONS: Dict[int, Callable[[_Machine], object]] = {
    ord("h"): lambda m: m.stack.append(m.memo[m.whole(1)]),
    ord("X"): lambda m: m.text(4),
    ord("q"): lambda m: m.remember(m.whole(1)),
    ord("j"): lambda m: m.stack.append(m.memo[m.whole(4)]),
    ord("r"): lambda m: m.remember(m.whole(4)),
    ord("K"): lambda m: m.stack.append(m.whole(1)),
    ord("M"): lambda m: m.stack.append(m.whole(2)),
    ord("}"): lambda m: m.put({}),
    ord("("): lambda m: m.marks.append(len(m.stack)),
    ord("u"): lambda m: m.set_items(),
    ord("]"): lambda m: m.put([]),
    ord("e"): lambda m: m.appends(),
    ord("J"): lambda m: m.stack.append(m.whole(4)),
    ord("N"): _constant(None),
    0x88: _constant(value=True),
    0x89: _constant(value=False),
    0x8A: lambda m: m.number(1),
    0x8B: lambda m: m.number(4),
    ord("G"): _float,
    0x85: lambda m: m.small_tuple(1),
    0x86: lambda m: m.small_tuple(2),
    0x87: lambda m: m.small_tuple(3),
    ord("t"): lambda m: m.put(tuple(m.since_mark())),
    ord(")"): lambda m: m.put(()),
    ord("a"): lambda m: m.append(),
    ord("s"): lambda m: m.set_item(),
    ord("l"): lambda m: m.put(m.since_mark()),
    ord("d"): lambda m: m.make_dict(),
    ord("I"): lambda m: m.read_int(),
    ord("L"): lambda m: m.read_int(),
    ord("F"): lambda m: m.stack.append(float(m.line())),
    ord("V"): lambda m: m.stack.append(m.line()),
    ord("p"): lambda m: m.remember(int(m.line()[:20])),
    ord("g"): lambda m: m.stack.append(m.memo[int(m.line()[:20])]),
    0x8C: lambda m: m.text(1),
    0x8D: lambda m: m.text(8),
    ord("T"): lambda m: m.text(4),
    ord("U"): lambda m: m.text(1),
    ord("B"): lambda m: m.text(4),
    ord("C"): lambda m: m.text(1),
    0x94: lambda m: m.remember(len(m.memo)),
    ord("2"): lambda m: m.stack.append(m.stack[-1]),
    ord("0"): lambda m: m.stack.pop(),
    ord("1"): lambda m: m.since_mark(),
    0x80: _skip(1),
    0x95: _skip(8),
}
