"""Makes a program folder of the rank program written by hand: toy.py EXECUTABLE DIR RANKS [tokens].

With `tokens` the program takes its inputs from a token file, and DIR.weights and DIR.bin are made too. TOY_COLUMNS is the
number of columns of the parameter s.
"""

import json
import os
import shutil
import struct
import subprocess
import sys

executable, folder, ranks = sys.argv[1:4]
tokens = len(sys.argv) > 4
columns = os.environ.get("TOY_COLUMNS", "6")
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
environment = dict(os.environ, TOY_RANKS=ranks, **({"TOY_TOKENS": "1"} if tokens else {}))
manifest = json.loads(
    subprocess.run([executable, "--manifest"], env=environment, capture_output=True, check=True).stdout
)
with open(os.path.join(folder, "rank0"), "w") as file:
    assignments = f"TOY_RANKS={ranks} TOY_COLUMNS={columns} " + ("TOY_TOKENS=1 " if tokens else "")
    # A name of its own, by which a test can look for processes that were left behind.
    os.symlink(executable, os.path.join(folder, "toy"))
    file.write(f"#!/bin/sh\n{assignments}exec {os.path.abspath(folder)}/toy\n")
os.chmod(os.path.join(folder, "rank0"), 0o755)
if tokens:
    weights = os.path.abspath(folder) + ".weights"
    shutil.rmtree(weights, ignore_errors=True)
    os.makedirs(weights)
    writer = os.path.join(os.path.dirname(__file__), "tensors.py")
    specs = ["x:F32:4x5=-3", "w:F16:5x7=-10", f"s:F32:5x{columns}=1"]
    subprocess.run([sys.executable, writer, "write", os.path.join(weights, "model.safetensors"), *specs], check=True)
    with open(os.path.join(weights, "config.json"), "w") as file:
        file.write('{"model_type": "toy"}\n')
    manifest["model"]["weights_dir"] = weights
    with open(folder + ".bin", "wb") as file:
        file.write(struct.pack("<97H", *[i % 50 for i in range(97)]))
    with open(folder + ".json", "w") as file:
        json.dump({"dtype": "uint16", "vocab_size": 50}, file)
with open(os.path.join(folder, "manifest.json"), "w") as file:
    json.dump(manifest, file)
