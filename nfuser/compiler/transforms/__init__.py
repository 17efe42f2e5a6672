# SPDX-License-Identifier: Apache-2.0
"""Programs made of programs: their derivatives, all rows at once, and cuts in two."""
