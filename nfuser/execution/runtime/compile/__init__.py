# SPDX-License-Identifier: Apache-2.0
"""From a kernel's source to what can be launched, here or in another process."""
