# SPDX-License-Identifier: Apache-2.0
"""Derive faults from the files of nfuser: what ``tests.fuzz.hunt`` takes.

``python -m tests.fuzz.mutants --rooms compiler/trace frontend --count 400 > F.json``
draws evenly from the rooms, and from the kinds of mistakes within each. Faults that
fail in nearly every program are left out: any program finds those.
"""

# Trees have nodes of many kinds.
# pyright: basic

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from itertools import cycle
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.fuzz import planting, switches
from tests.fuzz.mixed import GENERATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[2]
ROOMS = (  # what assignment and loops concern
    *("compiler/trace", "frontend", "compiler/ops", "compiler/ops/loops"),
    *("compiler/domains", "compiler/segment", "compiler/rewrite", "compiler/schedule"),
    *("compiler/lower", "execution/host", "execution/runtime"),
)
_BEYOND = (  # words of files that these programs do not reach
    *("cuda", "device", "torch", "jax", "dask", "explain", "definition", "sharding"),
    *("async", "stream", "random", "dlpack", "vmap", "grad", "error", "message"),
    *("doc", "transforms", "autotune", "heuristics", "tuning", "describe", "repr"),
)
_PLAIN = (4, 11, 23, 31, 47, 5)  # short programs
_SLOWEST = 60  # seconds of a process: what takes longer hangs
_MANY = 5  # of the programs above that fail: nearly every one
_OTHER = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_SWAPPED = {"all": "any", "any": "all", "min": "max", "max": "min"}
_DROPPED = {"reversed": "list", "sorted": "list"}


class Site(NamedTuple):
    """A mistake: its kind, where it stands, and what stands there then."""

    kind: str
    node: Any
    becomes: Any  # a node, or none where a statement is left out


def _within(items: list[Any]) -> Iterator[list[Any]]:
    """Give a list without each of its items."""
    for k in range(len(items)):
        yield items[:k] + items[k + 1 :]


def _with(node: Any, **fields: Any) -> Any:
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _conditions(node: ast.AST) -> Iterator[Site]:
    match node:
        case ast.BoolOp(values=values):
            for rest in _within(values):
                made = rest[0] if len(rest) == 1 else _with(node, values=rest)
                yield Site("operand", node, made)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield Site("negated", node, inner)
        case ast.Compare(ops=[op]) if type(op) in _OTHER:
            yield Site("equal", node, _with(node, ops=[_OTHER[type(op)]()]))
        case ast.IfExp(body=body, orelse=orelse):
            yield Site("choice", node, body)
            yield Site("choice", node, orelse)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            for k, part in enumerate(parts := node.generators):
                for rest in _within(part.ifs):
                    made = [*parts[:k], _with(part, ifs=rest), *parts[k + 1 :]]
                    yield Site("filter", node, _with(node, generators=made))
        case _:
            pass


def _values(node: ast.AST) -> Iterator[Site]:
    match node:
        case ast.BinOp(
            left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)
        ):
            yield Site("one", node, left)
        case ast.BinOp(left=left, op=ast.BitOr() | ast.Add(), right=right):
            yield Site("part", node, left)
            yield Site("part", node, right)
        case ast.Subscript(slice=ast.Constant(value=0)):
            made = ast.UnaryOp(ast.USub(), ast.Constant(1))
            yield Site("last", node, _with(node, slice=made))
        case ast.Subscript(
            slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))
        ):
            yield Site("first", node, _with(node, slice=ast.Constant(0)))
        case ast.Subscript(slice=ast.Slice(lower=None, upper=None, step=ast.expr())):
            yield Site("order", node, node.value)
        case ast.Tuple(elts=elts, ctx=ast.Load()) if len(elts) > 1:
            for rest in _within(elts):
                yield Site("key", node, _with(node, elts=rest))
        case ast.Call():
            yield from _calls(node)
        case _:
            pass


def _calls(node: ast.Call) -> Iterator[Site]:
    name = getattr(node.func, "id", None)
    if name in _SWAPPED:
        yield Site("fold", node, _with(node, func=ast.Name(_SWAPPED[name])))
    if name in _DROPPED:
        made = _with(node, func=ast.Name(_DROPPED[name]), keywords=[])
        yield Site("order", node, made)
    if name and name[0].isupper():
        return
    for rest in _within(node.keywords):
        yield Site("keyword", node, _with(node, keywords=rest))
    match node.args:
        case [ast.Name() as one, ast.Name() as other, *rest]:
            yield Site("argument", node, _with(node, args=[other, one, *rest]))
        case _:
            pass


def _statements(node: ast.AST) -> Iterator[Site]:
    match node:
        case ast.If(body=[*_, ast.Return() | ast.Continue() | ast.Break()], orelse=[]):
            yield Site("early", node, None)
        case ast.If(orelse=[]):
            yield Site("block", node, None)
        case ast.Expr(value=ast.Call()):
            yield Site("statement", node, None)
        case ast.AugAssign():
            yield Site("statement", node, None)
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield Site("statement", node, None)
        case _:
            pass


def _sites(source: str) -> Iterator[Site]:
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            yield from _in_body(function.body)


def _in_body(body: list[ast.stmt]) -> Iterator[Site]:
    """Give the mistakes of a function, which none within it has as its own."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Assert, ast.Raise)):
            continue
        yield from _conditions(node)
        yield from _values(node)
        yield from _statements(node)
        annotation = getattr(node, "annotation", None)
        waiting += [x for x in ast.iter_child_nodes(node) if x is not annotation]


def _text(source: str, site: Site) -> tuple[str, str] | None:
    """Return a text that stands once in a file, and what it becomes."""
    node, becomes = site.node, site.becomes
    lines = source.splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno
    raw = [x.encode() for x in lines]
    start = raw[first][: node.col_offset].decode()
    end = raw[last - 1][node.end_col_offset :].decode()
    if becomes is None:
        made = "pass"
    else:
        made = ast.unparse(ast.fix_missing_locations(copy.deepcopy(becomes)))
        made = f"({made})"
    before, after = "", ""
    while source.count(before + "".join(lines[first:last]) + after) > 1:
        if first - before.count("\n") > 0:
            before = lines[first - before.count("\n") - 1] + before
        else:
            return None
    text = before + "".join(lines[first:last])
    new = f"{before}{start}{made}{end}"
    try:
        if ast.dump(ast.parse(source)) == ast.dump(
            ast.parse(source.replace(text, new))
        ):
            return None
    except SyntaxError:
        return None
    return text, new


def _files(room: str, rooms: list[str]) -> list[Path]:
    """Return the files of a room, less those of rooms within it that are asked for."""
    others = [_ROOT / "nfuser" / x for x in rooms if x.startswith(f"{room}/")]
    folder = _ROOT / "nfuser" / room
    found = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]
    inner = [str(x.relative_to(_ROOT / "nfuser")) for x in found]
    return [
        x
        for x, name in zip(found, inner, strict=True)
        if not any(o in x.parents for o in others)
        and not any(word in name for word in _BEYOND)
    ]


def drawn(rooms: list[str], first: int) -> Iterator[tuple[str, list[str]]]:
    """Give faults, and a name for each: a room after the other, without end."""
    rng = random.Random(first)
    by_room: list[dict[str, list[tuple[Path, Site]]]] = []
    for room in rooms:
        kinds: dict[str, list[tuple[Path, Site]]] = {}
        for file in _files(room, rooms):
            for site in _sites(file.read_text()):
                kinds.setdefault(site.kind, []).append((file, site))
        for sites in kinds.values():
            rng.shuffle(sites)
        by_room.append(kinds)
    for kinds in cycle(by_room):
        filled = [kind for kind, sites in kinds.items() if sites]
        if not filled:
            return
        kind = rng.choice(filled)
        file, site = kinds[kind].pop()
        found = _text(file.read_text(), site)
        if found is not None:
            name = f"{file.stem}_{site.node.lineno}_{kind}"
            yield name, [str(file.relative_to(_ROOT / "nfuser")), *found]


def _is_found_at_once(name: str) -> bool:
    """Tell whether nearly every program fails, in a process of its own."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] != 0
    os.environ["NFUSER_CACHE_DIR"] = tempfile.gettempdir() + f"/{name}"
    switches.ACTIVE = name
    wrong = 0
    signal.alarm(_SLOWEST)
    for met, number in enumerate(_PLAIN):
        try:
            GENERATORS["short"](number, "interpret")
        except Exception:  # noqa: BLE001 (each is one that fails)
            wrong += 1
        if met - wrong >= len(_PLAIN) - _MANY:
            break
    os._exit(int(wrong >= _MANY))


def _kept(faults: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the faults that do not fail at once."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for part in ("nfuser", "tests"):
            copytree(_ROOT / part, tree / part)
        planted = {n: planting.Fault(*x[:3]) for n, x in faults.items()}
        apart = planting.plant(tree / "nfuser", planted)
        names = [x for x in faults if x not in apart]
        path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.mutants", "--sift", *names],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "TMPDIR": folder, "NUMBA_OPT": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return {name: faults[name] for name in done.stdout.split()}


def main() -> None:
    """Print as many faults as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", nargs="+", default=ROOMS)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the seed")
    parser.add_argument("--sift", nargs="*", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.sift is not None:
        for name in asked.sift:
            if not _is_found_at_once(name):
                sys.stdout.write(name + "\n")
                sys.stdout.flush()
        return
    faults: dict[str, list[str]] = {}
    for name, rest in drawn(list(asked.rooms), asked.first):
        if len(faults) == asked.count:
            break
        faults[name] = rest
    json.dump(_kept(faults), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
