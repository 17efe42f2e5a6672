# SPDX-License-Identifier: Apache-2.0
"""``nfuser.FusionDefinition``: fusions built by hand, under nvFuser's names."""
