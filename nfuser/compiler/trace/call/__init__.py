# SPDX-License-Identifier: Apache-2.0
"""One call as a trace sees it: what it is given, changes and returns."""
