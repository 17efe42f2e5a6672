# SPDX-License-Identifier: Apache-2.0
"""What a traced function sees in place of arrays and numbers."""
