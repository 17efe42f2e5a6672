# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m nfuser demo|doctor|cache|explain``."""

from __future__ import annotations

import argparse
import sys

from nfuser import cache_command, demo, doctor, explain_command


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit status."""
    parser = argparse.ArgumentParser("python -m nfuser", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="six fused functions against NumPy")
    commands.add_parser("doctor", help="versions, backends, and what is missing")
    cache = commands.add_parser("cache", help="the folder of compiled kernels")
    cache.add_argument("action", choices=cache_command.ACTIONS)
    explain = commands.add_parser("explain", help="how a script's calls are fused")
    explain.add_argument("script")
    explain.add_argument("arguments", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(arguments)
    if chosen.command == "cache":
        return cache_command.main(chosen.action)
    if chosen.command == "explain":
        return explain_command.main(chosen.script, chosen.arguments)
    return {"demo": demo.main, "doctor": doctor.main}[chosen.command]()


if __name__ == "__main__":
    sys.exit(main())
