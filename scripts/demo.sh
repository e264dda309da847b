#!/usr/bin/env bash
# The main job, from a fresh machine: installs, builds, exports a GPT-2 and a Llama of a few million parameters from
# transformers, says what a step on 8 CPU ranks sends, trains both on a real text there, each on a mesh of three axes, shows that
# the loss falls from ln(V) and equals the 1-rank run, and loads the saved weights in transformers.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$ND_ROOT"
bash scripts/install.sh
bash scripts/build.sh
source scripts/env.sh

work=$ND_BUILD/demo
mkdir -p "$work"
nd-data /usr/share/common-licenses/* --tokenizer bytes -o "$work/tokens.bin"

# train MODEL NAME MESH: the run's metrics and weights are $work/MODEL-NAME.jsonl and $work/MODEL-NAME.
train() {
  rm -rf "$work/$1-$2"
  nd-run "$work/$1/model.onnx" --shard="$3" "${sizes[@]}" --data "$work/tokens.bin" --steps 30 --lr 5e-4 --warmup 10 \
    --metrics "$work/$1-$2.jsonl" --save "$work/$1-$2"
}

sizes=(--batch=16 --seq=64)
for pair in gpt2:dp2,fsdp2,tp2 llama:fsdp2,cp2,tp2; do
  model=${pair%%:*} mesh=${pair#*:}
  nd_say "$model: export from transformers (random weights)"
  [[ -e $work/$model/model.onnx ]] || nd-export hf "examples/$model.json" --random-init 0 -o "$work/$model"
  nd_say "$model: a step on 8 ranks, $mesh"
  nd-import "$work/$model/model.onnx" "${sizes[@]}" -o "$work/$model.mlir"
  nd-opt --shard="$mesh" --report=text "$work/$model.mlir" | sed -n '/^Sent in a step/,/^$/p'
  nd_say "$model: train on 8 ranks, $mesh"
  train "$model" mesh "$mesh"
  nd_say "$model: train on 1 rank"
  train "$model" one dp1
  python scripts/demo_report.py "$work/$model-mesh.jsonl" "$work/$model-one.jsonl" "$work/$model-mesh" "$work/tokens.bin"
done
