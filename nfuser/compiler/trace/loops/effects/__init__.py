# SPDX-License-Identifier: Apache-2.0
"""What a body does beside returning a value, told before it happens."""
