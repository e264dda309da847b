"""Writes and prints small safetensors files without any package.

tensors.py write FILE NAME:TYPE:D0xD1=START ...   values START, START + 1, ... (TYPE: F32, F16, I64)
tensors.py print FILE NAME                        its shape and values
tensors.py header FILE JSON BYTES                 a file of that header, then BYTES zeros
tensors.py nested FILE DEPTH                      a file whose header is that many opening brackets
"""

import json
import math
import struct
import sys

FORMATS = {"F32": "f", "F16": "e", "I64": "q"}


def write(path, specs):
    header, data = {}, b""
    for spec in specs:
        name, kind, rest = spec.rsplit(":", 2)
        dims, start = rest.split("=")
        shape = [int(d) for d in dims.split("x") if d]
        values = [int(start) + i for i in range(math.prod(shape))]
        packed = struct.pack(f"<{len(values)}{FORMATS[kind]}", *values)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path, name):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(size))[name]
        file.seek(8 + size + entry["data_offsets"][0])
        data = file.read(entry["data_offsets"][1] - entry["data_offsets"][0])
    code = FORMATS[entry["dtype"]]
    values = struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)
    print(name, entry["dtype"], entry["shape"], " ".join(f"{v:g}" for v in values))


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3:])
elif sys.argv[1] == "print":
    for wanted in sys.argv[3:]:
        read(sys.argv[2], wanted)
else:
    nested = sys.argv[1] == "nested"
    text = b"[" * int(sys.argv[3]) if nested else sys.argv[3].encode()
    with open(sys.argv[2], "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + bytes(0 if nested else int(sys.argv[4])))
