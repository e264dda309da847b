"""PyTorch's side of a benchmark: training steps of a Hugging Face causal LM on CPU, eager or compiled. Prints one JSON line.

Times are whole steps: forward, backward, clipping when asked for, fused AdamW.
"""

import argparse
import json
import resource
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", help="config JSON of the model")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--autocast", action="store_true", help="the forward under autocast to bf16")
    parser.add_argument("--clip", type=float, default=0.0, help="global norm; 0 = no clipping")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=7)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    config = AutoConfig.from_pretrained(args.config)
    model = AutoModelForCausalLM.from_config(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    forward = torch.compile(model) if args.compile else model
    times = []
    for _ in range(args.steps):
        ids = torch.randint(0, config.vocab_size, (args.batch, args.seq))
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=args.autocast):
            loss = forward(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        if args.clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - start)
    rest = sorted(times[1:])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        json.dumps(
            {
                "first_s": times[0],
                "best_s": rest[0],
                "median_s": rest[len(rest) // 2],
                "peak_bytes": peak,
                "loss": loss.item(),
            }
        )
    )


main()
