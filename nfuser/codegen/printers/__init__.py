# SPDX-License-Identifier: Apache-2.0
"""From kernel IR to Python source."""
