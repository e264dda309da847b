#!/usr/bin/env bash
# The main job, from a fresh machine: installs, builds, exports a GPT-2 and a Llama of a few million parameters from
# transformers, trains both on 8 CPU ranks on a real text, shows that the loss falls from ln(V) and equals the 1-rank run, and
# loads the saved weights in transformers.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$ND_ROOT"
bash scripts/install.sh
bash scripts/build.sh
source scripts/env.sh

work=$ND_BUILD/demo
mkdir -p "$work"
nd-data /usr/share/common-licenses/* --tokenizer bytes -o "$work/tokens.bin"
for model in gpt2 llama; do
  nd_say "$model: export from transformers (random weights)"
  [[ -e $work/$model/model.onnx ]] || nd-export hf "examples/$model.json" --random-init 0 -o "$work/$model"
  common=("$work/$model/model.onnx" --batch=16 --seq=64 --data "$work/tokens.bin" --steps 40 --lr 1e-3 --warmup 10)
  for ranks in 8 1; do
    nd_say "$model: train on $ranks rank(s)"
    rm -rf "$work/$model-dp$ranks"
    nd-run "${common[@]}" --shard=dp$ranks --metrics "$work/$model-dp$ranks.jsonl" --save "$work/$model-dp$ranks"
  done
  python scripts/demo_report.py "$work/$model-dp8.jsonl" "$work/$model-dp1.jsonl" "$work/$model-dp8" "$work/tokens.bin"
done
