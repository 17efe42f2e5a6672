# SPDX-License-Identifier: Apache-2.0
"""What the array library does in the program of a call: functions, draws, scatters."""
