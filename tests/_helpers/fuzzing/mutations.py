"""Mutations of valid files: at random places, at meaningful places, and with values that are known to break parsers."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

Change: TypeAlias = Callable[[bytes, Random], bytes]

LARGEST = 1 << 21
"""The most bytes of an input."""

NUMBERS = (
    *("0", "-0", "-1", "1", "255", "256", "65536", "2147483648", "-2147483649", "4294967296", "9223372036854775808"),
    *("NaN", "nan", "inf", "-Infinity", "Infinity", "1e308", "-1e309", "1e-320", "0x10", "1_0", "1e", "+", "-", "."),
    *("9" * 400, "9" * 5000, "0." + "3" * 3000, "1e" + "9" * 30, "\u0661", "\uff11", "\u00b2", "true", "null", "''"),
)
"""Numbers at the limits of types and beyond them, and texts that only look like numbers."""

TOKENS = (
    *(
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\x80",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\x1a",
        b"\x0b",
    ),
    *(
        "\u2028".encode(),
        "\x85".encode(),
        "\u202e".encode(),
        b'"',
        b"'",
        b"\\",
        b"\\u0000",
        b"\\ud800",
        b"[",
        b"{",
        b"}",
    ),
    *(b"../", b"/", b".", b"..", b"/etc/passwd", b"~", b"%s%n", b"{0}", b"[red]x[/]", b"NaN", b"Infinity", b",", b";"),
)
"""Tokens that end lines, strings, texts and folders unexpectedly."""

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**64, 10**400, -(10**30), 0.5, 1e308, -1e-320, float("nan"), float("inf")),
    *("", "x", "nan", "inf", "-inf", "1e999", "\0", "\ud800", "../../x", "/", ".", "..", "a" * 5000, "[/]", "float16"),
    *([], [[]], [[[]]], [None], [1], ["x"], [[1, 2], [3]], [0.1] * 300, {}, {"": None}, {"a": {"a": {}}}, {"0": [0]}),
)
"""Replacements for values in JSON."""


def mutate(data: bytes, random: Random) -> bytes:
    """Make one change, or a few, at random places."""
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        data = random.choice(CHANGES)(data, random)
    return data[:LARGEST]


def _flip(data: bytes, random: Random) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(random.choice((1, 1, 2, 16))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randint(0, len(data))]


def _cut_end(data: bytes, random: Random) -> bytes:
    return data[: -random.randint(1, 8)]


def _delete(data: bytes, random: Random) -> bytes:
    start, end = _span(data, random)
    return data[:start] + data[end:]


def _repeat(data: bytes, random: Random) -> bytes:
    start, end = _span(data, random)
    return data[:end] + data[start:end] * random.choice((1, 2, 50)) + data[end:]


def _swap(data: bytes, random: Random) -> bytes:
    start, end = _span(data, random)
    middle = random.randint(start, end)
    return data[:start] + data[middle:end] + data[start:middle] + data[end:]


def _noise(data: bytes, random: Random) -> bytes:
    place = random.randint(0, len(data))
    return data[:place] + random.randbytes(random.choice((1, 4, 64))) + data[place:]


def _token(data: bytes, random: Random) -> bytes:
    place = random.randint(0, len(data))
    return data[:place] + random.choice(TOKENS) + data[place + random.choice((0, 0, 1, 4)) :]


def _number(data: bytes, random: Random) -> bytes:
    found = list(re.finditer(rb"-?[0-9]+(\.[0-9]+)?", data))
    if not found:
        return _token(data, random)
    match = random.choice(found)
    return data[: match.start()] + random.choice(NUMBERS).encode() + data[match.end() :]


def _integer(data: bytes, random: Random) -> bytes:
    """A binary integer at its limits, like a declared length or size; most often near an end of the file."""
    kind = random.choice(("<I", ">I", "<Q", ">Q", "<H"))
    size = struct.calcsize(kind)
    value = random.choice((0, 1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1, 100, 2**27))
    near = min(len(data), 64)
    place = random.choice((random.randint(0, near), len(data) - random.randint(0, near), random.randint(0, len(data))))
    return data[:place] + struct.pack(kind, value % (1 << (8 * size))) + data[place + size :]


def _long(data: bytes, random: Random) -> bytes:
    place = random.randint(0, len(data))
    return data[:place] + random.choice((b"a", b"1", b" ", b",", b"\0", b"\n", b'"')) * 200_000 + data[place:]


def _deep(data: bytes, random: Random) -> bytes:
    place = random.choice((0, random.randint(0, len(data))))
    opened = random.choice((b"[", b'{"a":', b"(", b"[[]," * 2))
    return data[:place] + opened * random.choice((50, 2_000, 100_000)) + data[place:]


def _lines(data: bytes, random: Random) -> bytes:
    """Lines in another order, twice, or left out."""
    lines = data.split(b"\n")
    return b"\n".join(random.choices(lines, k=random.randint(0, len(lines) + 2)))


def _span(data: bytes, random: Random) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.choice((1, 4, 32, len(data))))


CHANGES: Sequence[Change] = (
    *(_flip, _cut, _cut_end, _delete, _repeat, _swap, _noise, _token, _token, _number, _number, _integer, _long, _deep),
    _lines,
)


def mutate_json(content: Any, random: Random) -> Any:
    """Replace a value, drop a key, add a key, or put one part in the place of another."""
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        content = _replace(content, random)
    return content


def _replace(content: Any, random: Random) -> Any:
    if not isinstance(content, (dict, list)) or not content or random.random() < 0.15:
        return random.choice(VALUES)
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    key = random.choice(keys)
    way = random.random()
    if isinstance(content, list):
        changed = list(content)
        if way < 0.1:
            return [*changed, random.choice((*VALUES, *content))]
        if way < 0.2:
            return changed[:key] + changed[key + 1 :]
        changed[key] = content[random.choice(keys)] if way < 0.3 else _replace(content[key], random)
        return changed
    if way < 0.1:
        return {name: value for name, value in content.items() if name != key}
    if way < 0.15:
        return {**content, random.choice(("", "x", "format", key + " ")): random.choice(VALUES)}
    return {**content, key: content[random.choice(keys)] if way < 0.3 else _replace(content[key], random)}


def json_bytes(content: Any, random: Random) -> bytes:
    """JSON with or without characters beyond ASCII, and sometimes with a duplicate key."""
    try:
        text = json.dumps(content, ensure_ascii=random.random() < 0.5)
    except ValueError:  # more digits than Python writes
        text = "1" + "0" * 5000
    if random.random() < 0.05 and text.startswith("{") and len(text) > 2:
        text = text[:-1] + ", " + text[1:]
    return text.encode(errors="surrogatepass")
