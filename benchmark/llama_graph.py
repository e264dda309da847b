"""Writes the graph of a Llama as nd-import does from an export without weights, in a moment and at any size.

    python benchmark/llama_graph.py --model=405b --layers=126 --batch=512 --seq=8192 -o model.mlir

`--window=W` gives every second layer a sliding window, `--tied` ties the head to the embedding.
"""

import argparse
import dataclasses
import sys


@dataclasses.dataclass(frozen=True)
class Shape:
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    layers: int


MODELS = {
    "tiny": Shape(64, 176, 4, 2, 16, 512, 2),
    "8b": Shape(4096, 14336, 32, 8, 128, 128256, 32),
    "70b": Shape(8192, 28672, 64, 8, 128, 128256, 80),
    "405b": Shape(16384, 53248, 128, 8, 128, 128256, 126),
}
FILE = "transformers/models/llama/modeling_llama.py"


def tensor(*sizes, dtype="f32"):
    return "tensor<" + "".join(f"{s}x" for s in sizes) + dtype + ">"


class Graph:
    """Lines of @forward. Values are named as they come."""

    def __init__(self, shape: Shape, batch: int, seq: int, window: int, tied: bool):
        self.shape, self.batch, self.seq, self.window, self.tied = shape, batch, seq, window, tied
        self.lines, self.arguments, self.counter = [], [], 0

    def weight(self, name, *sizes):
        self.counter += 1
        value, rank = f"%w{self.counter}", f"nd.rank = {len(sizes)} : i64"
        attributes = f'{{nd.kind = "weight", nd.name = "{name}", {rank}, nd.trainable = true}}'
        self.arguments.append(f"{value}: {tensor(*sizes)} {attributes}")
        return value

    def add(self, operation, types, module, line, results=1):
        self.counter += 1
        value = f"%{self.counter}"
        bound = value if results == 1 else f"{value}:{results}"
        self.lines.append(f'    {bound} = {operation} : {types} loc("{module}"("{FILE}":{line}:0))')
        return value if results == 1 else f"{value}#0"

    def linear(self, x, name, width_in, width_out, line):
        w = self.weight(f"{name}.weight", width_out, width_in)
        x_type, result = tensor(self.batch, self.seq, width_in), tensor(self.batch, self.seq, width_out)
        types = f"{x_type}, {tensor(width_out, width_in)} -> {result}"
        return self.add(f"nd.dot_general {x}, {w} contract = [2] x [1]", types, name, line)

    def norm(self, x, name):
        h, w = self.shape.hidden, self.weight(f"{name}.weight", self.shape.hidden)
        types = f"{tensor(self.batch, self.seq, h)}, {tensor(h)} -> {tensor(self.batch, self.seq)}"
        return self.add(f"nd.rms_norm {x}, {w} eps = 9.9999997473787516E-6", types, name, 67, results=2)

    def heads(self, x, count, module, line):
        """[B, S, H*D] -> [B, H, S, D]"""
        b, s, d = self.batch, self.seq, self.shape.head_dim
        merged, split, moved = tensor(b, s, count * d), tensor(b, s, count, d), tensor(b, count, s, d)
        x = self.add(f"nd.reshape {x}", f"{merged} -> {split}", module, line)
        return self.add(f"nd.transpose {x} permutation = [0, 2, 1, 3]", f"{split} -> {moved}", module, line)

    def attention(self, x, layer, cos, sin):
        b, s, d, a, k = self.batch, self.seq, self.shape.head_dim, self.shape.heads, self.shape.kv_heads
        module, h = f"model.layers.{layer}.self_attn", self.shape.hidden
        q = self.heads(self.linear(x, f"{module}.q_proj", h, a * d, 244), a, module, 244)
        key = self.heads(self.linear(x, f"{module}.k_proj", h, k * d, 245), k, module, 245)
        value = self.heads(self.linear(x, f"{module}.v_proj", h, k * d, 246), k, module, 246)
        table = tensor(b, s, d // 2)
        q = self.add(f"nd.rope {q}, {cos}, {sin}", f"{tensor(b, a, s, d)}, {table}", module, 249)
        key = self.add(f"nd.rope {key}, {cos}, {sin}", f"{tensor(b, k, s, d)}, {table}", module, 249)
        q_type, k_type = tensor(b, a, s, d), tensor(b, k, s, d)
        window = f" {{window = {self.window} : i64}}" if self.window and layer % 2 else ""
        types = f"{q_type}, {k_type}, {k_type} -> {q_type}, {tensor(b, a, s)}"
        operation = f"nd.attention {q}, {key}, {value} scale = {d**-0.5!r} causal{window}"
        o = self.add(operation, types, module, 258, results=2)
        o = self.add(f"nd.transpose {o} permutation = [0, 2, 1, 3]", f"{q_type} -> {tensor(b, s, a, d)}", module, 258)
        o = self.add(f"nd.reshape {o}", f"{tensor(b, s, a, d)} -> {tensor(b, s, a * d)}", module, 269)
        return self.linear(o, f"{module}.o_proj", a * d, h, 270)

    def mlp(self, x, layer):
        module, h, f = f"model.layers.{layer}.mlp", self.shape.hidden, self.shape.ffn
        wide = tensor(self.batch, self.seq, f)
        gate = self.linear(x, f"{module}.gate_proj", h, f, 164)
        activation = f"{module}.act_fn"
        negative = self.add(f"arith.negf {gate}", wide, activation, 103)
        exponential = self.add(f"math.exp {negative}", wide, activation, 103)
        denominator = self.add(f"arith.addf {exponential}, %one", wide, activation, 103)
        sigmoid = self.add(f"arith.divf %one, {denominator}", wide, activation, 103)
        silu = self.add(f"arith.mulf {gate}, {sigmoid}", wide, activation, 103)
        up = self.linear(x, f"{module}.up_proj", h, f, 164)
        product = self.add(f"arith.mulf {silu}, {up}", wide, module, 164)
        return self.linear(product, f"{module}.down_proj", f, h, 164)

    def build(self):
        b, s, h, v, half = self.batch, self.seq, self.shape.hidden, self.shape.vocab, self.shape.head_dim // 2
        stream, ids = tensor(b, s, h), tensor(b, s, dtype="i64")
        table = self.weight("model.embed_tokens.weight", v, h)
        x = self.add(f"nd.take {table}[%ids]", f"{tensor(v, h)}, {ids} -> {stream}", "model.embed_tokens", 372)
        frequencies = ", ".join(f"{500000.0 ** (-i / half):.8e}" for i in range(half))
        self.lines.append(f"    %frequencies = arith.constant dense<[{frequencies}]> : {tensor(half)}")
        self.lines.append(f"    %one = arith.constant dense<1.0> : {tensor(b, s, self.shape.ffn)}")
        angle, rotary = tensor(b, s, half), "model.rotary_emb"
        position = self.add("arith.sitofp %positions", f"{ids} to {tensor(b, s)}", rotary, 111)
        rows = self.add(f"nd.broadcast {position} dims = [0, 1]", f"{tensor(b, s)} -> {angle}", rotary, 111)
        columns = self.add("nd.broadcast %frequencies dims = [2]", f"{tensor(half)} -> {angle}", rotary, 111)
        angles = self.add(f"arith.mulf {rows}, {columns}", angle, rotary, 111)
        cos = self.add(f"math.cos {angles}", angle, rotary, 113)
        sin = self.add(f"math.sin {angles}", angle, rotary, 114)
        for layer in range(self.shape.layers):
            module = f"model.layers.{layer}"
            attended = self.attention(self.norm(x, f"{module}.input_layernorm"), layer, cos, sin)
            x = self.add(f"arith.addf {x}, {attended}", stream, module, 308)
            mapped = self.mlp(self.norm(x, f"{module}.post_attention_layernorm"), layer)
            x = self.add(f"arith.addf {x}, {mapped}", stream, module, 314)
        x = self.norm(x, "model.norm")
        if not self.tied:
            return self.linear(x, "lm_head", h, v, 471)
        types = f"{stream}, {tensor(v, h)} -> {tensor(b, s, v)}"
        return self.add(f"nd.dot_general {x}, {table} contract = [2] x [1]", types, "lm_head", 471)

    def write(self, out):
        logits, result = self.build(), tensor(self.batch, self.seq, self.shape.vocab)
        ids = tensor(self.batch, self.seq, dtype="i64")
        bound = f"nd.bound = {self.shape.vocab} : i64"
        inputs = [
            f'%ids: {ids} {{{bound}, nd.kind = "input", nd.name = "input_ids"}}',
            f'%positions: {ids} {{nd.kind = "input", nd.name = "position_ids"}}',
        ]
        blocks = ", ".join(f'"model.layers.{i}"' for i in range(self.shape.layers))
        model = (
            f"batch = {self.batch} : i64, blocks = [{blocks}], files = [], ignore_index = -100 : i64, "
            f'max_positions = 131072 : i64, name = "model", seq = {self.seq} : i64, task = "causal-lm", '
            f'vocab_size = {self.shape.vocab} : i64, weights_dir = ""'
        )
        print(f"module attributes {{nd.model = {{{model}}}}} {{", file=out)
        arguments = ", ".join(inputs + self.arguments)
        results = f'({result} {{nd.kind = "logits", nd.name = "logits"}})'
        print(f"  func.func @forward({arguments}) -> {results} {{", *self.lines, sep="\n", file=out)
        print(f"    return {logits} : {result}\n  }}\n}}", file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="405b")
    parser.add_argument("--layers", type=int, help="the model's own number otherwise")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seq", type=int, default=8192)
    parser.add_argument("--window", type=int, default=0, help="sliding window of every second layer")
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("-o", default="-", help="the file to write; - is standard output")
    args = parser.parse_args()
    shape = MODELS[args.model]
    if args.layers:
        shape = dataclasses.replace(shape, layers=args.layers)
    graph = Graph(shape, args.batch, args.seq, args.window, args.tied)
    if args.o == "-":
        graph.write(sys.stdout)
    else:
        with open(args.o, "w") as out:
            graph.write(out)


if __name__ == "__main__":
    main()
