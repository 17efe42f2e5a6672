# SPDX-License-Identifier: Apache-2.0
"""Sphinx settings."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from asv_bench.compare.cores import pin
from nfuser import __version__

pin()  # what the gallery times has the same cores, and threads that do not spin

project = "nfuser"
author = "The nfuser developers"
copyright = "The nfuser developers"
release = version = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "reference",
    "promotion",
    "measured",
    "asv_pages",
]
exclude_patterns = ["_build", "_ext", "gallery"]  # its pages are made of scripts
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "made_gallery",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib", "gallery_times.keep"),
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "download_all_examples": False,
    "abort_on_example_error": True,
    "min_reported_time": 1e9,
}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3  # pages link to each other's headings
# What nothing but a type checker reads has no page.
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 70  # longer ones have a line for each argument
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output are no code
html_theme = "pydata_sphinx_theme"
html_title = "nfuser"
html_static_path = ["_static"]
html_css_files = ["nfuser.css"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "nfuser"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
names_without = ("index", "install", "quickstart", "questions")
html_sidebars: dict[str, list[str]] = {name: [] for name in names_without}
