# SPDX-License-Identifier: Apache-2.0
"""Functions of the user's, written anew so that their loops can be traced."""
