# SPDX-License-Identifier: Apache-2.0
"""One page that shows how a call is fused: lines, graph, kernels, passes, cache."""
