"""Runs nd-import on cut and damaged copies of a model: damage.py ND_IMPORT MODEL. Deterministic."""

import pathlib
import random
import subprocess
import sys

tool, model = sys.argv[1], pathlib.Path(sys.argv[2])
whole = model.read_bytes()
copy = model.with_name("damaged.onnx")
numbers = random.Random(0)
refused = imported = crashed = 0


def attempt(data: bytes) -> None:
    global refused, imported, crashed
    copy.write_bytes(data)
    run = subprocess.run([tool, copy, "--batch", "2", "--seq", "3", "-o", "/dev/null"], capture_output=True, timeout=60)
    if run.returncode == 0:
        imported += 1
    elif run.returncode == 1 and b"error: " in run.stderr:
        refused += 1
    else:
        crashed += 1
        print("status", run.returncode, run.stderr[-300:], "kept in", copy.with_suffix(f".{crashed}"))
        copy.with_suffix(f".{crashed}").write_bytes(data)


step = max(1, len(whole) // 60)
for length in range(0, len(whole), step):
    attempt(whole[:length])
for _ in range(200):
    data = bytearray(whole)
    for _ in range(numbers.choice([1, 1, 1, 2, 4])):
        data[numbers.randrange(len(data))] = numbers.choice([0, 1, 0x7F, 0x80, 0xFF, numbers.randrange(256)])
    attempt(bytes(data))
print(f"{refused} refused, {imported} imported, {crashed} crashed")
