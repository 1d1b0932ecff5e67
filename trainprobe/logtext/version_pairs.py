"""Two pieces of software that do not fit each other, read out of what one of them says.

Wordings: NumPy (numpy/core/_multiarray_umath.py, ImportExport.c of Cython), pip's resolver,
transformers (utils/versions.py), torch and torchvision (extension.py, cpp_extension.py,
torch/cuda/__init__.py), glibc's ld.so, protobuf (descriptor.py), CPython's ImportError.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NAME = r"[A-Za-z][\w.-]{0,60}"
_VERSION = r"\d[\w.+-]{0,40}"
_SPEC = r"(?:[<>=!~]=?[\w.*]{1,20},? ?){1,4}"
_LIBRARY = re.compile(r"(?:site|dist)-packages/([A-Za-z_]\w{0,60})")
# Whose symbol it is, by how its C++ name begins.
_SYMBOLS = (
    (re.compile(r"_ZNK?3c10|_ZNK?2at|_ZN5torch|aoti_torch|THP|\w*torch"), "the torch that is here"),
    (re.compile(r"nccl"), "the NCCL that is here"),
    (re.compile(r"cu(?:blas|dnn|sparse|solver|fft|da)|nv[A-Z]|__nv"), "the CUDA that is here"),
    (re.compile(r"Py[A-Z_]|_Py"), "this Python"),
)
# (what is said, one side, the other side); {importer} is the package whose line imports.
_FORMS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(form), one, other)
    for form, one, other in (
        (
            rf"compiled using NumPy (?P<a>1\.[\dx.]{{1,8}})\s{{1,4}}cannot be run in(?:\s{{1,4}}NumPy (?P<b>{_VERSION}))?",  # noqa: E501
            "a module built for NumPy {a}",
            "NumPy {b}",
        ),
        (
            r"compiled against API version (?P<a>0x\w{1,4})[^\n]{0,60}version of numpy is (?P<b>0x\w{1,4})",  # noqa: E501
            "a module built for NumPy's API {a}",
            "NumPy with the API {b}",
        ),
        (
            r"_ARRAY_API not found|numpy\.\w{1,20} size changed|numpy\.core\.multiarray failed",
            "{importer}",
            "NumPy",
        ),
        (
            rf"(?P<p>{_NAME}) (?P<v>{_VERSION}) (?:requires|has requirement) (?P<n>{_NAME}?) ?(?P<s>{_SPEC}), but you(?:'ll)? have (?P<m>{_NAME}) (?P<w>{_VERSION})",  # noqa: E501
            "{m} {w}",
            "{p} {v}, which asks for {n}{s}",
        ),
        (
            rf"(?P<n>{_NAME}?)(?P<s>{_SPEC}) is required[^\n]{{0,120}}but found (?P<m>{_NAME})==(?P<w>{_VERSION})",  # noqa: E501
            "{m} {w}",
            "{importer}, which asks for {n}{s}",
        ),
        (
            rf"requires `(?P<n>{_NAME}?)(?P<s>{_SPEC})`",
            "the {n} that is here",
            "{importer}, which asks for {n}{s}",
        ),
        (
            rf"PyTorch has CUDA Version=(?P<a>{_VERSION}) and (?P<n>{_NAME}) has CUDA Version=(?P<b>{_VERSION})",  # noqa: E501
            "{n} for CUDA {b}",
            "torch for CUDA {a}",
        ),
        (
            r"detected CUDA version \((?P<a>[\d.]{1,8})\) mismatches[^\n]{0,80}\((?P<b>[\d.]{1,8})\)",  # noqa: E501
            "CUDA {a}",
            "torch for CUDA {b}",
        ),
        (
            r"driver on your system is too old \(found version (?P<a>\d{1,6})\)",
            "the NVIDIA driver (for CUDA {a})",
            "the CUDA of this torch",
        ),
        (
            r"driver version is insufficient for CUDA runtime",
            "the NVIDIA driver",
            "the CUDA runtime",
        ),
        (r"Driver/library version mismatch", "the NVIDIA driver's library", "its kernel module"),
        (r"operator torchvision::", "torchvision", "torch"),
        (
            r"Descriptors cannot (?:not )?be created directly",
            "the generated code of {importer}",
            "protobuf",
        ),
        (
            r"version `(?P<a>(?:GLIBC|GLIBCXX|CXXABI)_[\d.]{1,12})' not found \(required by (?P<b>[^)\n]{1,300})\)",  # noqa: E501
            "the C library that is here",
            "{b}, which asks for {a}",
        ),
        (
            rf"cannot import name '(?P<a>\w{{1,80}})' from '(?P<n>{_NAME})' \([^)\n]{{0,300}}-packages",  # noqa: E501
            "{importer}",
            "{n}, which has no {a}",
        ),
    )
)
_UNDEFINED = re.compile(
    r"(?P<file>[^\s:]{1,300}\.so[\w.]{0,12}): undefined symbol: (?P<symbol>\w{1,300})"
)


@dataclass(frozen=True)
class VersionPair:
    """`one` and `other` are nouns, each with the version or the wish where that is told."""

    one: str
    other: str

    @property
    def says(self) -> str:
        """`tokenizers 0.20.1 does not fit transformers, which asks for tokenizers<0.19`."""
        return f"{self.one} does not fit {self.other}"


def version_pair(text: str, files: Sequence[str] = ()) -> VersionPair | None:
    """The pair that a message names; None where it names none. `files` are those of the frames,
    the innermost first.
    """
    undefined = _UNDEFINED.search(text)
    if undefined is not None:
        whose = next((who for form, who in _SYMBOLS if form.match(undefined["symbol"])), "")
        path = undefined["file"]
        name = _LIBRARY.search(path)
        module = name[1] if name is not None else path.rsplit("/", 1)[-1]
        return VersionPair(module, whose) if whose else None
    importer = next((found[1] for file in files if (found := _LIBRARY.search(file))), "a package")
    for form, one, other in _FORMS:
        match = form.search(text)
        if match is not None:
            words = {
                name: value.strip(" ,.") for name, value in match.groupdict(default="").items()
            }
            sides = (side.format(importer=importer, **words).strip() for side in (one, other))
            return VersionPair(*sides)
    return None
