"""Mutants of a rank's program: what a wrong sharding pass would have written, made from what the right one writes.

A mutant edits the text of `nd-opt --shard=...`. Operations are found by what they are and by the tensors they name, never by
number.
"""

import dataclasses
import re
from collections.abc import Callable


class Step:
    """The lines of a rank's program."""

    def __init__(self, text):
        self.lines = text.splitlines()

    def text(self):
        return "\n".join(self.lines) + "\n"

    def find(self, *patterns, last=False):
        """The index of the first (last) line that has every pattern."""
        found = [i for i, line in enumerate(self.lines) if all(re.search(p, line) for p in patterns)]
        assert found, f"no line has all of {patterns}"
        return found[-1 if last else 0]

    def edit(self, index, pattern, replacement):
        new, count = re.subn(pattern, replacement, self.lines[index], count=1)
        assert count and new != self.lines[index], f"{pattern} changes nothing in: {self.lines[index]}"
        self.lines[index] = new

    def edit_all(self, pattern, replacement, *where):
        indices = [i for i, line in enumerate(self.lines) if all(re.search(p, line) for p in where)]
        assert indices
        for i in indices:
            self.edit(i, pattern, replacement)

    def result(self, index, k=0):
        """The k-th result of the operation on a line."""
        name = self.lines[index].split(" = ")[0].strip().split(", ")
        if len(name) > 1:
            return name[k]
        return f"{name[0].split(':')[0]}#{k}" if ":" in name[0] else name[0]

    def operands(self, index):
        """The operands of a collective."""
        return re.search(r"= nd\.\S+\s+(?:sum |max |min )?\s*(%.*?) over ", self.lines[index])[1].split(", ")

    def types(self, index):
        """The types behind the last colon."""
        return re.findall(r"tensor<[^>]*>", self.lines[index].rsplit(" : ", 1)[1])

    def replace(self, old, new, begin):
        """Uses from a line on."""
        pattern = re.escape(old) + r"(?![\w#:])"
        count = 0
        for i in range(begin, len(self.lines)):
            head, equals, body = self.lines[i].partition(" = ")
            if not head.strip().startswith("%"):
                head, equals, body = "", "", self.lines[i]
            body, n = re.subn(pattern, new, body)
            self.lines[i], count = head + equals + body, count + n
        assert count, f"nothing uses {old}"

    def collective(self, kind, tensor, axes=None):
        """The line of the collective that moves a tensor, and the tensor's place in it."""
        where = [rf"nd\.{kind} ", rf'"{re.escape(tensor)}"'] + ([re.escape(axes)] if axes else [])
        index = self.find(*where)
        names = re.search(r"names = \[(.*?)\]", self.lines[index])[1].split(", ")
        return index, names.index(f'"{tensor}"')

    def skip(self, index, k=0):
        """The collective does nothing to its k-th operand."""
        self.replace(self.result(index, k), self.operands(index)[k], index + 1)

    def repeat(self, index, k=0):
        """The k-th operand is combined once more."""
        old, kind = self.result(index, k), self.types(index)[k]
        axes = re.search(r"over @mesh \[.*?\]", self.lines[index])[0]
        self.replace(old, "%again", index + 1)
        line = f'%again = nd.all_reduce sum {old} {axes} instance = 9001 names = ["again"] reason = "" : {kind}'
        self.lines.insert(index + 1, line)

    def multiply(self, index, k, factor):
        """The k-th result of a collective times a number."""
        old, kind = self.result(index, k), self.types(index)[k]
        self.replace(old, "%scaled", index + 1)
        self.lines[index + 1 : index + 1] = [
            f"%factor = arith.constant dense<{factor:e}> : {kind}",
            f"%scaled = arith.mulf {old}, %factor : {kind}",
        ]

    def regroup(self, index, old, new):
        self.edit(index, re.escape(f"over @mesh {old}"), f"over @mesh {new}")


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    pitfalls: str  # groups of shared/reference/pitfalls.md
    model: str
    mesh: str
    edit: Callable[[Step], None]
    caught: str = ""  # by nd-verify-sharding with a message that has this; empty: by execution
    options: tuple[str, ...] = ()
    moves: bool = True  # a number; what does not run, or only costs, moves none


def gradient(tensor, change, axes=None):
    """A change to the collective that reduces a gradient."""
    return lambda step: change(step, *step.collective("(all_reduce|reduce_scatter)", tensor, axes))


def on(patterns, pattern, replacement):
    return lambda step: step.edit(step.find(*patterns), pattern, replacement)


def everywhere(pattern, replacement, *where):
    return lambda step: step.edit_all(pattern, replacement, *where)


def drop_as_partial(step):
    index = step.find(r"nd\.as_partial")
    step.replace(step.result(index), re.search(r"as_partial (%\S+)", step.lines[index])[1], index + 1)


def norm_of_partial_gradients(step):
    index, k = step.collective("all_reduce", "lm_head.weight")
    whole, part = step.result(index, k), step.operands(index)[k]
    square = step.find(rf"arith\.mulf {re.escape(whole)}, {re.escape(whole)} ")
    step.edit(square, r"mulf \S+, \S+", f"mulf {part}, {part}")


def bias_on_every_rank(step):
    """%r = all_reduce %d; %s = %r + bias  becomes  %s = all_reduce (%d + bias)."""
    index = step.find(r"nd\.all_reduce +sum", "'nd.dot_general' combines")
    reduced, product = step.result(index), step.operands(index)[0]
    add = step.find(rf"arith\.addf .*{re.escape(reduced)}[, ]")
    total = step.result(add)
    other = next(o for o in re.search(r"addf (\S+), (\S+) ", step.lines[add]).groups() if o != reduced)
    made = step.find(rf"^ *{re.escape(other)} = nd\.broadcast")
    kind = step.types(index)[0]
    step.lines[add] = ""
    step.replace(total, reduced, add)
    step.edit(index, re.escape(product) + r"(?= over)", "%biased")
    bias = step.lines[made]
    step.lines[made] = ""
    step.lines[index:index] = [bias, f"%biased = arith.addf {product}, {other} : {kind}"]


def forget_ring_step(step):
    index = step.find(r"= nd\.attention ", r"carry\(")
    carried = re.search(r"carry\((%\S+), (%\S+) :", step.lines[index]).groups()
    for k in (0, 1):
        step.replace(step.result(index, k), carried[k], index + 1)


def merge_gathers(step):
    first = step.find(r"nd\.all_gather")
    second = next(i for i in range(first + 1, len(step.lines)) if "nd.all_gather" in step.lines[i])
    number = re.search(r"instance = (\d+)", step.lines[first])[1]
    step.edit(second, r"instance = \d+", f"instance = {number}")


def swap_gradients(step):
    """The updates of keys' and values' projection take each other's gradients."""
    index, k = step.collective("all_reduce", "model.layers.0.self_attn.k_proj.weight")
    _, v = step.collective("all_reduce", "model.layers.0.self_attn.v_proj.weight")
    one, two = (step.result(index, place) for place in (k, v))
    lines = [step.find(rf"nd\.sgd .* grad {re.escape(g)} ") for g in (one, two)]
    step.edit(lines[0], re.escape(one) + " ", two + " ")
    step.edit(lines[1], re.escape(two) + " ", one + " ")


def swap_parts(step):
    """Queries' and keys' columns of a fused parameter trade places in the checkpoint."""
    index = step.find(r"func\.func")
    name = r'nd\.name = "transformer\.h\.0\.attn\.c_attn\.weight#'
    offsets = dict(re.findall(rf"{name}([01])\", nd\.part = {{[^}}]*offset = (\d+)", step.lines[index]))
    for number, other in ("01", "10"):
        pattern = rf"({name}{number}\", nd\.part = {{[^}}]*offset = )\d+"
        step.lines[index], count = re.subn(pattern, rf"\g<1>{offsets[other]}", step.lines[index])
        assert count == 2  # the argument and the result


def unmask_vocabulary(step):
    index = step.find(r"arith\.constant dense<0xFF800000>")
    minus_infinity = step.result(index)
    select = step.find(rf"arith\.select .*, {re.escape(minus_infinity)} ")
    logits = re.search(r"select %\S+, (%\S+),", step.lines[select])[1]
    step.replace(step.result(select), logits, select + 1)


def norm_of_copies(step):
    """The gradient's norm reads what every holder of a key head has."""
    index, k = step.collective("all_reduce", f"gradient of {K}")
    summed = step.result(index, k)
    make = step.find(rf"nd\.make_copies {re.escape(summed)} ")
    copies, kinds = step.result(make), re.findall(r"tensor<[^>]*>", step.lines[make])
    line = step.lines.pop(make)
    square = step.find(rf"arith\.mulf {re.escape(summed)}, {re.escape(summed)} ")
    step.lines.insert(square, line)
    step.lines[square + 1] = f"{step.result(square + 1)} = arith.mulf {copies}, {copies} : {kinds[1]}"
    reduce = step.find(rf"nd\.reduce +sum {re.escape(step.result(square + 1))} ")
    step.edit(reduce, r"dims = \[0, 1, 2\] : \S+", f"dims = [0, 1] : {kinds[1]}")


def past_the_sum(step):
    """A key head's copies are updated by what their own rank has of the gradient."""
    index, k = step.collective("all_reduce", f"gradient of {K}")
    make = step.find(rf"nd\.make_copies {re.escape(step.result(index, k))} ")
    own = step.find(rf"{re.escape(step.operands(index)[k])} = nd\.sum_copies")
    step.replace(step.result(make), re.search(r"sum_copies (%\S+) ", step.lines[own])[1], make + 1)


def divide_loss(step):
    index, k = step.collective("all_reduce", "loss")
    step.multiply(index, k, 0.5)


K, DOWN = (f"model.layers.0.{n}.weight" for n in ("self_attn.k_proj", "mlp.down_proj"))
OFF = ("--sequence-parallel=off",)
PARTIAL = "is a partial sum, but the operation needs its reduced value"
TWICE = r"combines \(sum\) operand \d+, which is equal on all ranks"


def lose_chunk(step):
    index = step.find(r"arith\.addf", r"nd\.chunk = 1 :")
    step.replace(step.result(index), re.search(r"addf (%\S+),", step.lines[index])[1], index + 1)


def reduce_in_every_microbatch(step):
    """The accumulator of a gradient adds up sums over the replicas, which are summed over them once more behind the loop."""
    index, k = step.collective("all_reduce", DOWN)
    total = step.operands(index)[k]
    accumulate = step.find(rf"^ *{re.escape(total)} = nd\.accumulate")
    part, kind = re.search(r"accumulate (%\S+) count", step.lines[accumulate])[1], step.types(accumulate)[0]
    step.edit(accumulate, re.escape(part) + " ", "%early ")
    step.lines.insert(
        accumulate,
        f'%early = nd.all_reduce sum {part} over @mesh ["dp"] instance = 9999 names = ["early"] reason = "" : {kind}',
    )


def count_one_microbatch(step):
    """Gradients and loss are divided by twice the tokens, as if each of two microbatches had those of all."""
    index = step.find(r"arith\.extui .*xi1> to tensor<2x\S*xi32>")
    counted, kind = step.result(index), step.types(index)[0].replace("xi1>", "xi32>")
    step.replace(counted, "%twice", index + 1)
    step.lines.insert(index + 1, f"%twice = arith.addi {counted}, {counted} : {kind}")


TWO = ("--microbatches=2",)
ULYSSES = ("--cp=ulysses",)
MUTANTS = [
    Mutant("a gradient is not summed", "1, 7", "llama", "dp2,tp2", gradient(DOWN, Step.skip), f"along dp: .*{PARTIAL}"),
    Mutant("a gradient is summed twice", "7, 15", "llama", "dp2,tp2", gradient(DOWN, Step.repeat), f"along dp: {TWICE}"),
    Mutant("gradients are summed over dp instead of dp and cp", "6, 7", "llama", "dp2,cp2",
           gradient(DOWN, lambda s, i, k: s.regroup(i, '["dp", "cp"]', '["dp"]')), f"along cp: .*{PARTIAL}"),
    Mutant("gradients are summed over dp and tp instead of dp", "3, 15", "llama", "dp2,tp2",
           gradient(DOWN, lambda s, i, k: s.regroup(i, '["dp"]', '["dp", "tp"]')), "along tp: combines"),
    Mutant("a gradient is scaled by tp", "3, 5", "llama", "dp2,tp2", gradient(DOWN, lambda s, i, k: s.multiply(i, k, 2.0))),
    Mutant("the loss is summed over dp instead of dp and cp", "4, 8", "llama", "dp2,cp2",
           gradient("loss", lambda s, i, k: s.regroup(i, '["dp", "cp"]', '["dp"]')), f"along cp: .*{PARTIAL}"),
    Mutant("the loss is summed over tp too", "3, 4", "llama", "dp2,tp2",
           gradient("loss", lambda s, i, k: s.regroup(i, '["dp"]', '["dp", "tp"]')), f"along tp: {TWICE}"),
    Mutant("the loss is divided by the ranks", "6, 9", "llama", "dp2,tp2", divide_loss),
    Mutant("each rank counts its own tokens", "1, 5, 8", "llama", "dp2,tp2", gradient("tokens", Step.skip),
           "along dp: .*is a partial sum"),
    Mutant("gradients of norms are not summed over tp", "16", "llama", "dp2,tp2",
           gradient("model.norm.weight", lambda s, i, k: s.regroup(i, '["dp", "tp"]', '["dp"]')), f"along tp: .*{PARTIAL}"),
    Mutant("gradients of copied kv heads are not summed", "19", "llama", "tp4", gradient(K, Step.skip, '["tp.1"]'),
           "along tp.1: "),
    Mutant("irregular copies of kv heads are not summed", "19", "llama", "tp5", gradient(f"gradient of {K}", Step.skip),
           f"along tp: .*'arith.mulf' {PARTIAL}"),
    Mutant("irregular copies of kv heads are summed twice", "19", "llama", "tp5",
           gradient(f"gradient of {K}", Step.repeat), f"along tp: {TWICE}"),
    Mutant("irregular copies of kv heads are updated each by its own gradient", "19", "llama", "tp5", past_the_sum,
           "along tp: 'nd.sgd' needs the sum over all parts"),
    Mutant("the clip norm counts irregular copies of kv heads", "17, 19", "llama", "tp5", norm_of_copies,
           "along tp: 'nd.reduce' adds up operand 0"),
    Mutant("the clip norm counts replicas", "17", "llama", "dp2,tp2", drop_as_partial, f"along tp: .*{PARTIAL}"),
    Mutant("the clip norm is that of partial gradients", "14, 28", "llama", "dp2,tp2", norm_of_partial_gradients,
           f"along dp: .*'arith.mulf' {PARTIAL}"),
    Mutant("a row product is not summed", "15", "llama", "cp2,tp2",
           lambda s: s.skip(s.find(r"nd\.all_reduce +sum", "'nd.dot_general' combines")), "along tp: .*is a partial sum",
           OFF),
    Mutant("every rank adds the bias", "15", "gpt2", "dp2,tp2", bias_on_every_rank,
           "along tp: operand . of 'arith.addf' is a partial sum", OFF),
    Mutant("the maximum of the logits is that of a shard", "15", "llama", "dp2,tp2",
           lambda s: s.skip(s.find(r"nd\.all_reduce +max")), "along tp: .*is a partial max"),
    Mutant("a lookup takes a shard for the table", "18, 20", "llama", "dp2,tp2", on([r"nd\.take %arg"],
           r" \{shard_axes = .*?\}", ""),
           "along tp: the rows of the table are sharded"),
    Mutant("the gradient of the table takes a shard for it", "18, 20", "llama", "dp2,tp2",
           # Without the axes it writes beyond its result.
           on([r"= nd\.scatter_add"], r" \{shard_axes = .*?\}", ""), "along tp: ", moves=False),
    Mutant("places in the vocabulary are those of the first shard", "15, 20", "llama", "dp2,tp2",
           on([r"nd\.iota"], r" \{shard_axes = .*?\}", ""), "along tp: .*which is equal on all ranks"),
    Mutant("padded words are not masked", "20", "gpt2", "tp3", unmask_vocabulary),
    Mutant("padded labels count", "20, 27", "llama", "dp2,cp2",
           on([r"func\.func"], r"nd\.pad_value = -100", "nd.pad_value = 0")),
    Mutant("positions are those of a contiguous shard", "21", "llama", "dp2,cp2",
           on([r"func\.func"], r"(%arg1: tensor<2x8xi64> \{nd\.chunks = \{dim = 1 : i64, order = array<i64: )0, 3, 1, 2",
              r"\g<1>0, 1, 2, 3"),
           "has the sequence in"),
    Mutant("attention takes zig-zag chunks for contiguous ones", "21", "llama", "dp2,cp2",
           everywhere("order = array<i64: 0, 3, 1, 2>, ", "", r"= nd\.attention"), "has the sequence in"),
    Mutant("attention forgets its mask", "10, 12, 13", "llama", "dp2,cp2", everywhere(" causal", "", r"= nd\.attention")),
    Mutant("a ring step is taken for another", "13, 27", "llama", "dp2,cp2",
           on([r"= nd\.attention ", "ring_step = 1"], "ring_step = 1 : i64, ", ""), "the ring's steps"),
    Mutant("keys do not go around", "13, 27", "llama", "dp2,cp2",
           on([r"nd\.permute"], r"sources = \[1, 0\]", "sources = [0, 1]"), "at step 1 of the ring"),
    Mutant("a ring step is left out", "13, 27", "llama", "dp2,cp2", forget_ring_step, "the ring's steps"),
    Mutant("two gathers are merged", "27", "gpt2", "fsdp2,tp2", merge_gathers, "two collectives have instance", moves=False),
    Mutant("a weight is gathered over the wrong axis", "25, 29", "gpt2", "fsdp2,tp2",
           lambda s: s.regroup(s.find(r"nd\.all_gather %arg"), '["fsdp"]', '["tp"]'), "along fsdp: the rows of the table"),
    Mutant("a gather joins the wrong dimension", "22, 29", "gpt2", "fsdp2,tp2",
           on([r"nd\.all_gather %result"], r"dims = \[1\]", "dims = [0]"), "all_gather", moves=False),
    Mutant("scattered gradients are not summed over the replicas", "7, 25", "llama", "dp2,fsdp2",
           lambda s: s.skip(s.find(r"nd\.all_reduce +sum", re.escape('["dp"]'), "mlp.down_proj")), f"along dp: .*{PARTIAL}"),
    Mutant("parameters take each other's gradients", "22", "llama", "dp2,tp2", swap_gradients),
    Mutant("parts of a fused parameter trade places", "22, 24", "gpt2", "fsdp2,tp2", swap_parts),
    Mutant("a tied weight loses the gradient of its head", "18", "gpt2", "fsdp2,tp2",
           on([r"nd\.scatter_add .* init "], r" init %\S+ : tensor<\S+>", "")),
    Mutant("a chunk of tokens has the labels of another", "21", "llama", "dp2,tp2",
           on([r"nd\.slice", r"nd\.chunk = 1 :", r"-> tensor<1x\d+xi32>", r"starts = \[0, 4\]"], r"\[0, 4\]", "[0, 0]"),
           options=("--loss-chunk=5",)),
    Mutant("an accumulator of microbatches is not summed", "7, 9", "llama", "dp2,tp2", gradient(DOWN, Step.skip),
           f"along dp: .*{PARTIAL}", TWO),
    Mutant("a gradient is summed in every microbatch and behind them", "7, 9", "llama", "dp2,tp2",
           reduce_in_every_microbatch, f"along dp: {TWICE}", TWO),
    Mutant("tokens are counted for every microbatch", "1, 8, 9", "llama", "dp2,tp2", count_one_microbatch, options=TWO),
    Mutant("heads are exchanged with the ranks of another group", "6, 27", "llama", "dp2,cp2",
           lambda s: s.regroup(s.find(r"nd\.all_to_all"), '["cp"]', '["dp"]'), "along (dp|cp): ", ULYSSES),
    Mutant("the gradient of a chunk of tokens is lost", "7", "llama", "dp2,tp2", lose_chunk, options=("--loss-chunk=5",)),
]  # fmt: skip
