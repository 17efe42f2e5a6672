# SPDX-License-Identifier: Apache-2.0
"""Random numbers that are made where they are used."""
