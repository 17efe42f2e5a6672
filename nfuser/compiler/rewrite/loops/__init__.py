# SPDX-License-Identifier: Apache-2.0
"""What becomes of the bodies of loops, and of what loops carry."""
