"""PyTorch's side of fsdp_tp.py: training steps of a Hugging Face causal LM on several CPU ranks over gloo. Prints one JSON line.

    torchrun --standalone --nproc_per_node 2 torch_mesh.py {fsdp,tp} FOLDER --data tokens.bin [--compile]

fsdp: FSDP2, `fully_shard` on each block and on the model. tp: column and row parallel products in each block,
vocabulary-parallel embedding, head and loss (a Llama). Times are whole steps: forward, backward, clipping, AdamW. The
samples are those that nd takes of the same file with --no-shuffle.
"""

import argparse
import json
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module
from transformers import AutoModelForCausalLM


def shard_fully(model, mesh, compiled):
    blocks = model.transformer.h if hasattr(model, "transformer") else model.model.layers
    for block in blocks:
        if compiled:
            block.compile()
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


def split_products(model, mesh, compiled):
    column, row = ColwiseParallel, RowwiseParallel
    ends = {
        "model.embed_tokens": row(input_layouts=Replicate()),
        "lm_head": column(use_local_output=False),
    }
    parallelize_module(model, mesh, ends)
    attention = {f"self_attn.{name}_proj": column() for name in "qkv"} | {"self_attn.o_proj": row()}
    mlp = {"mlp.gate_proj": column(), "mlp.up_proj": column(), "mlp.down_proj": row()}
    for layer in model.model.layers:
        parallelize_module(layer, mesh, attention | mlp)
        if compiled:
            layer.compile()


def clip(parameters, limit):
    """PyTorch's clipping, which does not take DTensors and plain tensors together."""
    sharded = [p for p in parameters if isinstance(p, DTensor)]
    whole = [p for p in parameters if not isinstance(p, DTensor)]
    norms = [torch.nn.utils.get_total_norm([p.grad for p in part], foreach=True) for part in (sharded, whole) if part]
    norms = [norm.full_tensor() if isinstance(norm, DTensor) else norm for norm in norms]
    total = torch.linalg.vector_norm(torch.stack(norms))
    for part in (sharded, whole):
        if part:
            torch.nn.utils.clip_grads_with_norm_(part, limit, total, foreach=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("fsdp", "tp"))
    parser.add_argument("model", help="folder that transformers loads")
    parser.add_argument("--data", required=True, help="tokens as uint16")
    parser.add_argument("--compile", action="store_true", help="torch.compile of each block")
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--batch", type=int, default=4, help="sequences of all ranks together")
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    dist.init_process_group("gloo")
    world, rank = dist.get_world_size(), dist.get_rank()
    mesh = init_device_mesh("cpu", (world,))
    model = AutoModelForCausalLM.from_pretrained(args.model).train()
    (shard_fully if args.mode == "fsdp" else split_products)(model, mesh, args.compile)
    parameters = list(model.parameters())
    groups = {}
    for parameter in parameters:
        decay = 0.01 if parameter.ndim >= 2 else 0.0
        groups.setdefault((decay, isinstance(parameter, DTensor)), []).append(parameter)
    groups = [{"params": group, "weight_decay": decay} for (decay, _), group in groups.items()]
    optimizer = torch.optim.AdamW(groups, lr=1e-4, fused=True)

    tokens = torch.from_numpy(np.fromfile(args.data, dtype=np.uint16).astype(np.int64))
    replicas = world if args.mode == "fsdp" else 1
    own = range(args.batch)
    if replicas > 1:
        own = range(rank * args.batch // world, (rank + 1) * args.batch // world)
    times, cpu, losses = [], [], []
    for step in range(args.steps):
        samples = [(step * args.batch + i) * args.seq for i in own]
        ids = torch.stack([tokens[at : at + args.seq] for at in samples])
        labels = torch.stack([tokens[at + 1 : at + args.seq + 1] for at in samples])
        start, cpu_start = time.perf_counter(), time.process_time()
        logits = model(input_ids=ids, use_cache=False).logits
        if args.mode == "tp":
            with loss_parallel():
                loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
                loss.backward()
        else:
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
            loss.backward()
        clip(parameters, args.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
        loss = loss.detach()
        loss = loss.full_tensor() if isinstance(loss, DTensor) else loss
        if replicas > 1:
            dist.all_reduce(loss)
        losses.append(loss.item() / replicas)
    work = torch.tensor(cpu[1:]).mean()  # of all threads; then of all ranks
    dist.all_reduce(work)
    if rank == 0:
        rest = sorted(times[1:])
        result = {"best_s": rest[0], "median_s": rest[len(rest) // 2], "cpu_s": work.item(), "losses": losses}
        print(json.dumps(result), flush=True)
    dist.destroy_process_group()


main()
