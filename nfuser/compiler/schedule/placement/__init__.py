# SPDX-License-Identifier: Apache-2.0
"""Where values lie between what makes them and what reads them."""
