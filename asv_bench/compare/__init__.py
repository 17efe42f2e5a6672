# SPDX-License-Identifier: Apache-2.0
"""nfuser beside its peers, one process, results checked before they are timed."""
