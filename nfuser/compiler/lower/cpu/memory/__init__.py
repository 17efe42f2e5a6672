# SPDX-License-Identifier: Apache-2.0
"""From where a CPU kernel reads what it reads, and when."""
