# SPDX-License-Identifier: Apache-2.0
"""Object files: read, loaded, put into memory."""
