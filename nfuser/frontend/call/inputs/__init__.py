# SPDX-License-Identifier: Apache-2.0
"""What a call is given: its arguments, their forms, and what is written to them."""
