# SPDX-License-Identifier: Apache-2.0
"""Where single elements are computed, read and stored, and under which guards."""
