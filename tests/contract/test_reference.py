# SPDX-License-Identifier: Apache-2.0
"""Every public name has an entry in the reference, and an example that runs."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.lax
import nfuser.nn
import nfuser.numpy as xp
import nfuser.random
from nfuser import DataType, FusionDefinition, config, errors
from nfuser.__main__ import main
from nfuser.compiler.trace.captures.randomness.stream import Stream
from nfuser.frontend.definition.operations.ops import BINARY, TABLE, UNARY
from tests.contract.pages import examples_of
from tests.contract.reference import DOCS, extension

PAGES = {path: path.read_text() for path in sorted(DOCS.glob("reference/*.md"))}
TEXT = "\n".join(PAGES.values())
BLOCKS = re.findall(r"^```(pycon|python)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
# What needs a GPU, or another library, is shown in blocks that nothing runs.
CODE = "\n".join(
    block
    if kind == "python"
    else "\n".join(line for e in examples_of(block) for line in e.code)
    for kind, block in BLOCKS
)
CLASSES = {
    name: found
    for name in nfuser.__all__
    if inspect.isclass(found := getattr(nfuser, name))
}
METHODS = [
    (owner, name)
    for owner, found in CLASSES.items()
    if owner not in ("DataType", "NfuserError")
    for name in vars(found)
    if not name.startswith("_")
]
# What only the rooms above call: a sentence in the page says so.
INTERNAL = {"plan", "plan_like", "open_program", "outline"}
OPERATIONS: dict[str, str] = extension("examples").operations()


@pytest.mark.parametrize("name", nfuser.__all__)
def test_a_public_name_has_an_entry_and_an_example(name: str) -> None:
    entry = rf"auto\w+:: nfuser\.{name}$|`nfuser\.{name}`"
    assert re.search(entry, TEXT, re.MULTILINE), (
        f"write `.. autofunction:: nfuser.{name}`, or autoclass, into "
        "docs/reference/fuse.md, definition.md or host.md"
    )
    of_methods = any(owner == name for owner, _ in METHODS)
    assert of_methods or re.search(rf"\b{name}\b", CODE), (
        f"write an example of {name} into the page of docs/reference that lists it"
    )


@pytest.mark.parametrize(("owner", "name"), METHODS)
def test_a_public_method_says_what_it_does_and_has_an_example(
    owner: str, name: str
) -> None:
    found = inspect.getattr_static(CLASSES[owner], name)
    is_field = inspect.ismemberdescriptor(found)
    assert is_field or inspect.getdoc(found), f"give {owner}.{name} a docstring"
    assert name in INTERNAL or re.search(rf"\.{name}\b", CODE), (
        f"write an example of {owner}.{name} under `## {owner}` in docs/reference"
    )


def test_a_name_without_an_entry_or_an_example_would_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(
        AssertionError, match=r"write `\.\. autofunction:: nfuser\.unheard`"
    ):
        test_a_public_name_has_an_entry_and_an_example("unheard")
    monkeypatch.setitem(globals(), "TEXT", f"{TEXT}\n.. autofunction:: nfuser.unheard")
    with pytest.raises(AssertionError, match="write an example of unheard"):
        test_a_public_name_has_an_entry_and_an_example("unheard")

    class Mine:
        def silent(self) -> None: ...

        def shown_nowhere(self) -> None:
            """Do nothing."""

    monkeypatch.setitem(CLASSES, "Mine", Mine)
    for name, complaint in (("silent", "docstring"), ("shown_nowhere", "an example")):
        with pytest.raises(AssertionError, match=complaint):
            test_a_public_method_says_what_it_does_and_has_an_example("Mine", name)


@pytest.mark.parametrize("name", nfuser.lax.__all__)
def test_a_loop_has_an_entry_and_an_example(name: str) -> None:
    assert f".. autofunction:: nfuser.lax.{name}" in TEXT
    assert re.search(rf"\blax\.{name}\(", CODE), (
        f"write an example of lax.{name} into docs/reference/lax.md"
    )


DRAWING = [
    *(f"random.{name}" for name in nfuser.random.__all__),
    *(
        f"random.Generator.{name}"
        for name in dir(nfuser.random.Generator)
        if not name.startswith("_") and name not in vars(Stream)
    ),
    *(f"nn.{name}" for name in nfuser.nn.__all__),
]


# Kernels that compile for seconds: tests/random has what they draw.
LONG = {
    *("gamma", "chisquare", "beta", "f", "standard_t", "dirichlet", "vonmises"),
    *("poisson", "binomial", "negative_binomial"),
}


@pytest.mark.parametrize("name", DRAWING)
def test_what_draws_has_an_entry_and_an_example(name: str) -> None:
    short = name.rpartition(".")[2]
    is_listed = re.search(rf"auto\w+:: nfuser\.{name}$", TEXT, re.MULTILINE)
    assert is_listed or re.search(rf":members:.*\b{short}\b", TEXT), (
        f"write an entry of nfuser.{name} into docs/reference/random.md"
    )
    called = re.search(rf"\b{short}\b", CODE) or short in {"Generator", *LONG}
    assert called, f"write an example of {name} into docs/reference/random.md"


def test_every_name_of_the_namespace_is_in_one_family() -> None:
    families = extension("examples").numpy_families()
    listed = [name for family in families for name in family.examples]
    for name in xp.__all__:
        assert listed.count(name) == 1, (
            f"write {name} into `names` of one family in docs/reference/names.toml, "
            "and an example under it if the family's does not fit"
        )
    assert sorted(listed) == sorted(xp.__all__)


@pytest.mark.parametrize(
    "family", extension("examples").numpy_families(), ids=lambda f: f.title
)
def test_the_examples_of_a_family_run_plain_and_traced(family: Any) -> None:
    names = extension("examples").numpy_names()
    space = {"xp": names.pop("xp")}
    lines = ",\n    ".join(family.examples.values())
    code = f"def examples({', '.join(names)}):\n    return [{lines}]\n"
    exec(code, space)  # noqa: S102 (lines of our own)
    examples: Any = space["examples"]
    with np.errstate(all="ignore"):
        assert len(examples(*names.values())) == len(family.examples)
    if family.title != "Questions":  # answers that are no arrays
        nfuser.fuse(examples).explain(*names.values())


def test_every_operation_has_an_example() -> None:
    for name in TABLE:
        assert name in OPERATIONS, (
            f"write an example of {name} into docs/reference/names.toml"
        )
        assert f"fd.ops.{name}(" in OPERATIONS[name]


def test_every_operation_says_what_it_does() -> None:
    said = extension("examples").meanings()
    for name in (*UNARY, *BINARY):
        assert name in said or inspect.getdoc(TABLE[name]), (
            f"write what {name} does into docs/reference/names.toml"
        )


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_the_example_of_an_operation_defines_something(name: str) -> None:
    fd = FusionDefinition()

    def tensor(shape: list[int], dtype: DataType = DataType.Float) -> Any:
        return fd.define_tensor(shape, [True] * len(shape), dtype)

    given = {name: tensor([2, 3]) for name in ("x", "y")}
    given |= {name: tensor([3]) for name in ("u", "v")}
    given |= {name: tensor([3], DataType.Int) for name in ("i", "j")}
    given["b"] = tensor([3], DataType.Bool)
    made = eval(OPERATIONS[name], {"fd": fd, "DataType": DataType, **given})
    assert made is not None


def test_the_pages_of_names_that_come_by_the_hundred_show_all_of_them() -> None:
    page = extension("reference").numpy_page()
    assert re.findall(r"^\| `(\w+)", page, re.MULTILINE)[:2] == ["abs", "absolute"]
    assert len(re.findall(r"^\| `", page, re.MULTILINE)) == len(xp.__all__)
    assert "keepdims" in re.findall(r"^\| `sum.*", page, re.MULTILINE)[0]


def test_every_error_and_setting_is_listed() -> None:
    page = extension("reference").errors_page()
    for name, found in vars(errors).items():
        if inspect.isclass(found) and issubclass(found, errors.NfuserError):
            assert f"`nfuser.errors.{name}`" in page
    page = extension("reference").settings_page()
    for name in config.Config.__dataclass_fields__:
        is_there = f"`{name}`" in page or f"``{name}``" in (config.Config.__doc__ or "")
        assert is_there, f"write ``{name}`` into the docstring of nfuser.config.Config"
    source = (DOCS.parent / "nfuser" / "config.py").read_text()
    for name in set(re.findall(r'"(NFUSER_[A-Z_]+)"', source)):
        assert f"| `{name}` |" in TEXT, (
            f"write a row of {name} into docs/reference/environment.md"
        )


def test_every_command_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    (commands,) = re.findall(r"\{([\w,]+)\}\s+\.\.\.", capsys.readouterr().out)
    for name in commands.split(","):
        assert re.search(rf"^\| `{name}\b", TEXT, re.MULTILINE), (
            f"write a row of `{name}` into docs/reference/command_line.md"
        )
