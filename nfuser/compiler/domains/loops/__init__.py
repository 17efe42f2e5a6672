# SPDX-License-Identifier: Apache-2.0
"""What the turns of a loop do, element by element, and when they come to rest."""
