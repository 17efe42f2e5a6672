# SPDX-License-Identifier: Apache-2.0
"""Sphinx settings."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "nfuser"
author = "The nfuser developers"
copyright = "The nfuser developers"
release = version = installed_version("nfuser")
extensions = ["myst_parser", "sphinx.ext.autodoc", "operations", "promotion"]
exclude_patterns = ["_build", "_ext"]
html_theme = "alabaster"
html_theme_options = {"description": "Fusion of array functions in pure Python"}
