# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m nfuser demo|doctor|cache|explain|...``."""

from __future__ import annotations

import argparse
import sys

from nfuser.config import VERSION
from nfuser.frontend.commands import cache as cache_command
from nfuser.frontend.commands import demo, doctor
from nfuser.frontend.commands import script as script_command

_SCRIPTS = {
    "explain": "how a script's calls are fused",
    "kernels": "the kernels that a script's calls run, as Python",
    "timeline": "when a script traces, compiles and launches: a trace, in this folder",
    "report": "a page for each function that a script calls, in this folder",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit status."""
    parser = argparse.ArgumentParser("python -m nfuser", description=__doc__)
    parser.add_argument("--version", action="version", version=f"nfuser {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="six fused functions against NumPy")
    commands.add_parser("doctor", help="versions, backends, and what is missing")
    cache = commands.add_parser("cache", help="the folder of compiled kernels")
    cache.add_argument("action", choices=cache_command.ACTIONS)
    for name, told in _SCRIPTS.items():
        script = commands.add_parser(name, help=told)
        script.add_argument("script")
        script.add_argument("arguments", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(arguments)
    if chosen.command == "cache":
        return cache_command.main(chosen.action)
    if chosen.command in _SCRIPTS:
        stage = "source" if chosen.command == "kernels" else str(chosen.command)
        return script_command.main(chosen.script, chosen.arguments, stage)
    return {"demo": demo.main, "doctor": doctor.main}[chosen.command]()


if __name__ == "__main__":
    sys.exit(main())
