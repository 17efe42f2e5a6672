# SPDX-License-Identifier: Apache-2.0
"""What a traced function takes from outside its arguments, and where from."""
