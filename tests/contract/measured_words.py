# SPDX-License-Identifier: Apache-2.0
"""Sentences that say what was measured, found by their words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted(DOCS.rglob("*.md"))
        if page.relative_to(DOCS).parts[0] != "_build"
    ),
    *sorted((DOCS / "gallery").glob("*.*")),
]
FIGURE = re.compile(r"\{figure\}`([^`]+)`")

IN_README = {  # rows of its table: the means of which files
    "share of a copy's bandwidth": (
        ("h200/in_a_row", "share", ("nfuser", "torch.compile", "JAX", "Liger")),
    ),
    "the same of RoPE": (
        ("h200/rope", "share", ("nfuser", "torch.compile", "torch.compile, dynamic")),
    ),
    "times as long as nfuser": (
        ("two_cores/workloads", "times", ("the best peer",)),
        ("two_cores/workloads", "reused_times", ("the best peer",)),
        ("two_cores/workloads", "times", ("torch.compile", "JAX")),
    ),
    "the same on sixteen cores": (
        ("server/sixteen_threads", "times", ("the best peer",)),
        ("server/sixteen_threads", "reused_times", ("the best peer",)),
        ("server/sixteen_threads", "times", ("torch.compile", "JAX")),
    ),
}

_FENCED = re.compile(r"^(`{3,})([^`\n]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)

_NUMBER = (
    r"(?:\d[\d.,]*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty"
    r"|forty|fifty|(?:ten|dozen|hundred|thousand)s?|half|a quarter|a third|some|several"
    r"|a few)\b)"
)
_FRACTION = (
    r"\b(?:half|third|quarter|(?:fif|six|seven|eigh|nin|ten|twelf|twentie)th)s?\b"
)
_PART = rf"(?:{_NUMBER} ?%|{_FRACTION}|\b(?:double|twice|thrice)\b)"
_SHARE = r"[01]\.\d+"
_UNIT = r"(?:micro|milli|nano)?(?:second|minute|hour)s?\b"
_SPEED = r"(?:fast|slow|long|quick|cheap)(?:er)?\b"
_PEER = r"(?:NumPy|SciPy|PyTorch|torch|JAX|Numba|CuPy|Liger|Dask|nfuser|nvFuser|Python)"
_MOST = r"(?:copy|speed|bandwidth|throughput|peak)\b"
_AHEAD = r"\b(?:ahead|behind|slower|faster|los(?:t|es?)|gain(?:s|ed)?|wins?|won|gap)\b"
_MEMORY = r"[KMGT]i?B"
_TAKES = r"\b(?:cost|take|took|taken|save|use|load|peak)(?:s|d|ed)?\b"
WORDS = (
    rf"\d ?(?:µs|us|ms|ns|s|{_MEMORY}/s)(?![\w/-])",
    rf"{_NUMBER} (?:µs|ms|ns)\b|{_MEMORY} (?:per|a|each) second",
    rf"{_NUMBER}(?: of)?(?: an?)?[ -]{_UNIT}",
    rf"{_NUMBER} times (?:as )?(?:{_SPEED}|less|much time|the time|that of|a copy)",
    rf"{_NUMBER} times (?:{_PEER}\b|eager)|{_TAKES}[^.,;:]{{0,40}}{_NUMBER} times",
    rf"{_PART} (?:as )?(?:{_SPEED}|ahead|behind|less|more time|the time)",
    rf"{_PART} of (?:the time|one|what|a copy|the copy)\b",
    rf"\d\.\d+x\b|\dx (?:as )?{_SPEED}|\bspeed-?ups? (?:of|by) {_NUMBER}",
    rf"(?:\d|{_PART}) of (?:[\w.]+'?s? ){{0,2}}{_MOST}",
    rf"\b(?:reach(?:es|ed)?|r[au]ns? at|share of|gap is|gap was) {_SHARE}",
    rf"{_SHARE} (?:against|instead of|not) {_SHARE}",
    rf"{_AHEAD}[^.;:|]{{0,30}}{_NUMBER} ?%",
    rf"{_TAKES}[^.;:]{{0,40}}{_PART}",
    rf"{_TAKES}[^.;:]{{0,40}}\d ?{_MEMORY}\b",
)
NO_MEASUREMENT = (
    # how long a reader needs
    "docs/quickstart.md` is ten minutes",
    "What a report needs takes five minutes",
    # what is set, or asked for
    "a first call is that takes more than two seconds",
    "in a bar that comes after two seconds",
    "takes more than ten microseconds runs without Python's lock",
    "CI runs six seconds",
    # what is counted, or supposed
    "takes nothing is kept, products are computed twice",
)


def prose(page: Path) -> str:
    """Return what people read of a page, without code; of a script, its comments."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        told = ast.get_docstring(ast.parse(text)) or ""
        comments = [line[1:] for line in text.splitlines() if line.startswith("#")]
        return "\n".join([told, "", *comments])
    return _FENCED.sub(lambda found: found[3] if found[2][:1] == "{" else "", text)


def unfounded(text: str) -> list[str]:
    """Return the places that say what was measured, and take it from no file.

    What the role ``figure`` gives comes out of a file of results.
    """
    text = re.sub(r"\s+", " ", FIGURE.sub("", text))
    for phrase in NO_MEASUREMENT:
        text = text.replace(phrase, "")
    found = re.finditer("|".join(WORDS), text)
    return [text[max(0, f.start() - 60) : f.end() + 30].strip() for f in found]
