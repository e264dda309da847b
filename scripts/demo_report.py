"""Says what the demo's runs show: the loss, its difference between 8 ranks and 1, and the saved model in transformers."""

import json
import math
import sys

import numpy as np
import torch
from transformers import AutoModelForCausalLM


def losses(path):
    with open(path) as lines:
        return [json.loads(line)["loss"] for line in lines]


def main():
    many, one = losses(sys.argv[1]), losses(sys.argv[2])
    difference = max(abs(a - b) / b for a, b in zip(many, one, strict=True))
    print(f"loss on 8 ranks: {many[0]:.4f} (ln V = {math.log(256):.4f}) -> {many[-1]:.4f} after {len(many)} steps")
    print(f"largest relative difference from the 1-rank run over all steps: {difference:.1e}")
    model = AutoModelForCausalLM.from_pretrained(sys.argv[3]).eval()
    ids = torch.from_numpy(np.fromfile(sys.argv[4], dtype=np.uint16)[:2048].astype("int64")).reshape(16, 128)
    with torch.no_grad():
        loss = model(input_ids=ids, labels=ids).loss.item()
    print(f"the saved folder in transformers: loss {loss:.4f} on the first 2048 tokens of the text")
    if difference > 1e-5 or not many[-1] < many[0] - 1 or not loss < many[0] - 1:
        sys.exit("the demo did not show what it should")


main()
