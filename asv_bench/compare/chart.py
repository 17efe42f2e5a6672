# SPDX-License-Identifier: Apache-2.0
"""Draw what a comparison found, as a picture of the documentation.

``python -m asv_bench.compare.chart`` writes it anew from the committed JSON.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOUND = ROOT / "asv_bench" / "compare" / "results" / "h200" / "in_a_row.json"
PICTURE = ROOT / "docs" / "_static" / "share_of_bandwidth.svg"
PEERS = {
    "nfuser": "#2f9e44",
    "torch.compile": "#e8590c",
    "JAX": "#4c6ef5",
    "Liger": "#9c36b5",
}
ROWS = {
    "gelu(x+b) bf16 16384x4096": "gelu(x + b)",
    "softmax bf16 16384x4096": "softmax",
    "layer norm bf16 16384x4096": "layer norm",
    "RMS norm bf16 16384x4096": "RMS norm",
    "cross entropy bf16 8192x128256": "cross entropy",
    "RoPE bf16 2x32x8192x128": "RoPE",
}
_WIDTH, _LEFT, _BAR, _GAP, _TOP = 560, 118, 13, 14, 44
_FULL = _WIDTH - _LEFT - 46  # of a bar as fast as a copy


def chart(found: dict[str, Any]) -> str:
    """Return the picture as SVG: a bar for each peer, as long as its share.

    Colours are for light and dark pages alike.
    """
    rows = {row["name"]: row for row in found["rows"]}
    parts, at = [_legend()], _TOP
    for name, title in ROWS.items():
        row = rows[name]
        peers = [peer for peer in PEERS if peer in row["fresh"]]
        middle = at + len(peers) * _BAR / 2 + 5
        parts.append(f'<text x="{_LEFT - 8}" y="{middle:g}" class="r">{title}</text>')
        for peer in peers:
            parts.append(_bar(found, row, peer, at))
            at += _BAR
        at += _GAP
    height = at + 6
    edge = _LEFT + _FULL
    parts.append(f'<path d="M{edge} {_TOP - 6}V{height - 8}" class="c"/>')
    parts.append(f'<text x="{edge}" y="{_TOP - 11}" class="m">a copy: 1.00</text>')
    title = escape(f"Share of the bandwidth of a copy; {found['versions']}")
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="14">'
    )
    style = (
        "<style>text{fill:#868e96}.r{text-anchor:end}.m{text-anchor:middle}"
        ".s{font-size:11px}.c{stroke:#868e96;stroke-dasharray:4 3}</style>"
    )
    lines = (head, f"<title>{title}</title>", style, *parts, "</svg>\n")
    return "\n".join(lines)


def _bar(found: dict[str, Any], row: dict[str, Any], peer: str, y: int) -> str:
    share = row["necessary_bytes"] / row["fresh"][peer] / found["copy"]
    width = round(share * _FULL, 1)
    return (
        f'<rect x="{_LEFT}" y="{y}" width="{width}" height="{_BAR - 2}" rx="2" '
        f'fill="{PEERS[peer]}"/><text x="{_LEFT + width + 5:g}" y="{y + 10}" class="s">'
        f"{share:.2f}</text>"
    )


def _legend() -> str:
    parts: list[str] = []
    at = _LEFT
    for peer, colour in PEERS.items():
        parts.append(f'<rect x="{at}" y="8" width="11" height="11" fill="{colour}"/>')
        parts.append(f'<text x="{at + 16}" y="18">{peer}</text>')
        at += 40 + 8 * len(peer)
    return "".join(parts)


def main() -> None:
    """Write the picture."""
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(chart(json.loads(FOUND.read_text())))


if __name__ == "__main__":
    main()
