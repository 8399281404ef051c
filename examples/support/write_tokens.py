#!/usr/bin/env python3
"""write_tokens.py FILE: writes 4,000 tokens below 256, two bytes each, in which each follows from the last two."""

import pathlib
import struct
import sys

tokens = [1, 2]
while len(tokens) < 4000:
    tokens.append((3 * tokens[-1] + 5 * tokens[-2] + len(tokens) // 100) % 256)
pathlib.Path(sys.argv[1]).write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
