# SPDX-License-Identifier: Apache-2.0
"""Native source: what a call does, in a small part of Python that becomes LLVM's."""
