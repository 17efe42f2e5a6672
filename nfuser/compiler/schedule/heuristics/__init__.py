# SPDX-License-Identifier: Apache-2.0
"""The values that hold every decision about a kernel."""
