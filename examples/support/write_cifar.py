#!/usr/bin/env python3
"""write_cifar.py FOLDER: files in the binary format of CIFAR-10, of 40 noisy images each, whose
class shows in their brightness."""

import pathlib
import random
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
noise = random.Random(1)
names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
for name in names:
    records = bytearray()
    for image in range(40):
        label = image % 10
        records.append(label)
        records.extend(25 * label + noise.randrange(25) for _ in range(3 * 32 * 32))
    (folder / name).write_bytes(records)
