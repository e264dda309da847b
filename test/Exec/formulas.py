"""What a training step sends, in closed form: bytes by group and kind of collective, all ranks together.

This shares no code with the compiler. It states nd's choices: which dimension of a parameter FSDP shards, which units are
gathered how often, where tensor parallelism gathers and scatters, what the modes of context parallelism move. Numbers are exact.
"""

import collections
import dataclasses
import itertools
import math

AXES = ("dp", "fsdp", "cp", "tp")
GRADIENT_BYTES = 4  # gradients of weights, and of keys and values under cp, are reduced in f32


def up(size, parts):
    """`size` rounded up to a multiple of `parts`."""
    return -(-size // parts) * parts


@dataclasses.dataclass(frozen=True)
class Parameter:
    """`parallel`: the dimension that tp shards, as rows of `parts` heads or single elements; None = whole on every rank."""

    name: str
    shape: tuple[int, ...]
    unit: str  # embedding, block, head
    parallel: int | None = None
    role: str = ""  # vocabulary, query, key (and value), ffn; used on sequence shards: shards; on a rank's heads: heads
    same_gradient: bool = False  # as a parameter before: what is added to the same sum

    @property
    def read_by_backward(self):
        return not self.name.endswith((".bias", ".b"))

    def elements(self):
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Model:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool
    outside: tuple[Parameter, ...]  # embedding and head
    block: tuple[Parameter, ...]
    parallel_norms: int = 0  # attention and MLP read the same stream, through so many norms; 0: one after the other

    def parameters(self):
        return list(self.outside) + list(self.block) * self.layers

    def count(self):
        return sum(p.elements() for p in self.parameters())


def llama(layers, hidden, heads, kv_heads, head_dim, ffn, vocab, tied=False, head_norms=False):
    """`head_norms`: queries and keys are normalised, head by head."""
    q, kv = heads * head_dim, kv_heads * head_dim
    block = (
        Parameter("input_layernorm", (hidden,), "block", role="shards"),
        Parameter("q_proj", (q, hidden), "block", 0, "query"),
        Parameter("k_proj", (kv, hidden), "block", 0, "key"),
        Parameter("v_proj", (kv, hidden), "block", 0, "key"),
        Parameter("o_proj", (hidden, q), "block", 1, "query"),
        Parameter("post_attention_layernorm", (hidden,), "block", role="shards"),
        Parameter("gate_proj", (ffn, hidden), "block", 0, "ffn"),
        Parameter("up_proj", (ffn, hidden), "block", 0, "ffn"),
        Parameter("down_proj", (hidden, ffn), "block", 1, "ffn"),
    )
    if head_norms:
        block += tuple(Parameter(f"{part}_norm", (head_dim,), "block", role="heads") for part in "qk")
    outside = [
        Parameter("embed_tokens", (vocab, hidden), "embedding", 0, "vocabulary"),
        Parameter("norm", (hidden,), "head", role="shards"),
    ]
    if not tied:
        outside.append(Parameter("lm_head", (vocab, hidden), "head", 0, "vocabulary"))
    return Model(layers, hidden, heads, kv_heads, head_dim, ffn, vocab, tied, tuple(outside), block)


def gpt2(layers, hidden, heads, ffn, vocab, positions):
    """The head is tied; weights are stored [in, out]; query, key and value are one parameter, split into its parts."""

    def affine(name, width_in, width_out, row, role):
        """A row-parallel product's bias is added once, behind the sum: whole on every rank, used on sequence shards."""
        bias = {"role": "shards"} if row else {"parallel": 0, "role": role}
        return [
            Parameter(f"{name}.weight", (width_in, width_out), "block", 0 if row else 1, role),
            Parameter(f"{name}.bias", (width_out,), "block", **bias),
        ]

    block = [Parameter(f"{ln}.{p}", (hidden,), "block", role="shards") for ln in ("ln_1", "ln_2") for p in ("w", "b")]
    for part in ("query", "key", "value"):
        block += affine(f"c_attn.{part}", hidden, hidden, False, "query")
    block += affine("attn.c_proj", hidden, hidden, True, "query")
    block += affine("c_fc", hidden, ffn, False, "ffn") + affine("mlp.c_proj", ffn, hidden, True, "ffn")
    outside = (
        Parameter("wte", (vocab, hidden), "embedding", 0, "vocabulary"),
        Parameter("wpe", (positions, hidden), "embedding", role="shards"),
        Parameter("ln_f.w", (hidden,), "head", role="shards"),
        Parameter("ln_f.b", (hidden,), "head", role="shards"),
    )
    return Model(layers, hidden, heads, heads, hidden // heads, ffn, vocab, True, outside, tuple(block))


def cohere(layers, hidden, heads, kv_heads, head_dim, ffn, vocab):
    """As a Llama of which attention and MLP read one norm's result, and are added to the stream together."""
    of = llama(layers, hidden, heads, kv_heads, head_dim, ffn, vocab, tied=True)
    block = tuple(p for p in of.block if p.name != "post_attention_layernorm")
    return dataclasses.replace(of, block=block, parallel_norms=1)


def falcon(layers, hidden, heads, ffn, vocab):
    """As Cohere with one key head, an MLP of two products, and biases of norms."""
    of = cohere(layers, hidden, heads, 1, hidden // heads, ffn, vocab)
    block = [p for p in of.block if p.name != "gate_proj"] + [Parameter("ln.bias", (hidden,), "block", role="shards")]
    outside = (*of.outside, Parameter("ln_f.bias", (hidden,), "head", role="shards"))
    return dataclasses.replace(of, block=tuple(block), outside=outside)


def gpt_neox(layers, hidden, heads, ffn, vocab):
    """Attention and MLP have norms of their own; everything in a block has a bias, and the head is not tied."""
    of = gpt2(layers, hidden, heads, ffn, vocab, 0)
    block = tuple(dataclasses.replace(p, same_gradient=p.name == "mlp.c_proj.bias") for p in of.block)
    outside = [p for p in of.outside if p.name != "wpe"]
    outside.append(Parameter("embed_out", (vocab, hidden), "head", 0, "vocabulary"))
    return dataclasses.replace(of, tied=False, outside=tuple(outside), block=block, parallel_norms=2)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The mesh and the choices of a step. `fsdp` 0: the axis is not named. `batch`: sequences of a microbatch, all ranks."""

    dp: int = 1
    fsdp: int = 0
    cp: int = 1
    tp: int = 1
    batch: int = 8
    seq: int = 16
    microbatches: int = 1
    zero: int = 3
    keep_gathered: bool = False
    whole: bool = False  # one unit of all parameters
    aside: tuple[str, ...] = ()  # parameters behind the blocks in another unit than the one that forward reads last
    sequence_parallel: bool = True
    cp_mode: str = "ring"
    bytes: int = 4  # of compute type: gathers, activations
    nodes: int = 1  # that the ranks fill, one after the other

    @staticmethod
    def mesh(text, **choices):
        """`dp2,fsdp2` and so on."""
        sizes = {
            a: int(item[len(a) :])
            for item in text.split(",")
            for a in AXES
            if item[: len(a)] == a and item[len(a) :].isdigit()
        }
        return Plan(**sizes, **choices)

    @property
    def shards(self):
        """Ranks that share a parameter's storage, without tp: cp is among them when fsdp is named."""
        return self.fsdp * self.cp if self.fsdp else 1

    @property
    def ranks(self):
        return self.dp * max(self.fsdp, 1) * self.cp * self.tp

    @property
    def shard_axes(self):
        return {"fsdp", "cp"} if self.fsdp else set()

    @property
    def data_axes(self):
        return {"dp", "fsdp", "cp"}

    def size(self, axes):
        return math.prod(max(getattr(self, a), 1) for a in axes)

    @property
    def sequence(self):
        """Padded: two chunks for each rank in zig-zag order, and shards that tp divides."""
        unit = self.cp * (2 if self.cp > 1 and self.cp_mode != "ulysses" else 1)
        if self.tp > 1 and self.sequence_parallel:
            unit = math.lcm(unit, self.cp * self.tp)
        return up(self.seq, unit)

    @property
    def tokens(self):
        """Of a rank and microbatch."""
        return self.batch // self.size({"dp", "fsdp"}) * self.sequence // self.cp


class Step:
    """Adds up the collectives of one step."""

    def __init__(self, model: Model, plan: Plan):
        self.model, self.plan = model, plan
        self.sent = collections.defaultdict(lambda: collections.defaultdict(int))
        self.between_nodes = 0
        self.add_parameters()
        if plan.tp > 1:
            self.add_tensor_parallel()
        if plan.cp > 1:
            self.add_context_parallel()
        self.add_scalars()

    # Collectives: bytes that all ranks send when each group of ranks along `axes` runs one of them.

    def add(self, kind, axes, payload, times=1, label=None, size=None):
        """`payload` is a rank's whole tensor; `size`: of the group, where it is a part of an axis."""
        n = size or self.plan.size(axes)
        factor = {"all_reduce": 2 * (n - 1), "permute": n}.get(kind, n - 1)
        if n == 1 or payload == 0 or times == 0:
            return
        label = label or "+".join(a for a in AXES if a in axes and self.plan.size({a}) > 1)
        groups = self.plan.ranks // n
        self.sent[label][kind] += groups * factor * payload * times
        nodes = self.nodes_of(axes, size)
        left = {"all_reduce": 2 * (nodes - 1), "permute": nodes if nodes > 1 else 0, "all_to_all": n - n // nodes}
        self.between_nodes += groups * left.get(kind, nodes - 1) * payload * times

    def nodes_of(self, axes, size):
        """Nodes over which the group of rank 0 goes; `size`: it is so many neighbours along tp, and all of the other axes."""
        plan, nodes = self.plan, set()
        for coordinates in itertools.product(*(range(max(getattr(plan, axis), 1)) for axis in AXES)):
            rank = 0
            for axis, coordinate in zip(AXES, coordinates, strict=True):
                rank = rank * max(getattr(plan, axis), 1) + coordinate
            others = plan.size(axes - {"tp"})
            neighbours = size // others if size else plan.tp if "tp" in axes else 1
            outside = {a: c for a, c in zip(AXES, coordinates, strict=True) if a not in axes and a != "tp"}
            if not any(outside.values()) and coordinates[AXES.index("tp")] < neighbours:
                nodes.add(rank * plan.nodes // plan.ranks)
        return len(nodes)

    # Parameters.

    @property
    def kv_slots(self):
        """Key heads that a rank stores."""
        a, k, t = self.model.heads, self.model.kv_heads, self.plan.tp
        if k % t == 0:
            return k // t
        if a % t == 0 and t % k == 0:
            return 1
        own = up(a, t) // t
        used = [{q * k // a for q in range(r * own, min((r + 1) * own, a))} for r in range(t)]
        return max(map(len, used))

    @property
    def copies(self):
        """Ranks along tp that store the same key heads, where that is regular."""
        a, k, t = self.model.heads, self.model.kv_heads, self.plan.tp
        return t // k if k % t and a % t == 0 and t % k == 0 else 1

    @property
    def are_shared(self):
        """Whether ranks store the same key heads otherwise: where the ranks cut through groups of query heads."""
        a, k, t = self.model.heads, self.model.kv_heads, self.plan.tp
        return not (a % t == 0 and t % k == 0) and up(a, t) // t % (a // k) != 0

    def shared_elements(self, p: Parameter):
        """What a gradient of shared key heads is summed to, on all shards of storage: the parameter as users know it. Where
        storage cuts the heads a rank stores, a slot of each rank is summed with the same slot of the others: heads are
        rounded up to slots."""
        shape, n = self.local_shape(p), self.plan.shards
        divides = [dim for dim, size in enumerate(shape) if size % n == 0]
        cut = 0 if 0 in divides or not divides else max(divides, key=lambda dim: shape[dim])
        if n == 1 or cut != p.parallel:
            return p.elements()
        return up(self.model.kv_heads, self.kv_slots) // self.kv_slots * self.local_elements(p)

    def local_shape(self, p: Parameter):
        """On one rank of tp, padded."""
        shape, t, d = list(p.shape), self.plan.tp, self.model.head_dim
        if p.parallel is None or t == 1:
            return shape
        rows = {
            "query": up(self.model.heads, t) // t * d,
            "key": self.kv_slots * d,
        }.get(p.role, up(p.shape[p.parallel], t) // t)
        shape[p.parallel] = rows
        return shape

    def local_elements(self, p: Parameter):
        """Of all shards of one rank of tp, padded where no dimension divides."""
        shape, n = self.local_shape(p), self.plan.shards
        if shape[0] % n and not any(s % n == 0 for s in shape):
            shape[0] = up(shape[0], n)
        return math.prod(shape)

    def gathers_per_microbatch(self, p: Parameter):
        """Forward and backward. The last unit stays, what backward does not read (a table, a bias) is not gathered for it, and
        a table that the head reads is kept until then."""
        if self.plan.keep_gathered or self.plan.whole or not p.read_by_backward:
            return 1
        return 2 if p.unit == "block" or p.name in self.plan.aside else 1

    def add_parameters(self):
        plan, m = self.plan, self.plan.microbatches
        for p in self.model.parameters():
            elements, n = self.local_elements(p), plan.shards
            if plan.fsdp:
                gathers = self.gathers_per_microbatch(p) * m if plan.zero == 3 else 1
                self.add("all_gather", plan.shard_axes, elements * plan.bytes, gathers)
            if p.same_gradient:
                continue
            if plan.fsdp:
                self.add("reduce_scatter", plan.shard_axes, elements * GRADIENT_BYTES, 1 if plan.zero == 1 else m)
            axes = {"dp"} | ({"cp"} - plan.shard_axes)
            payload = elements // n * GRADIENT_BYTES
            if plan.tp > 1 and (p.role == "heads" or (p.role == "shards" and plan.sequence_parallel)):
                self.add("all_reduce", axes | {"tp"}, payload)
            elif plan.tp > 1 and p.role == "key" and self.copies > 1:
                part = f"tp[{self.copies}]" if self.copies < plan.tp else "tp"
                names = [a for a in AXES if a in axes and plan.size({a}) > 1] + [part]
                self.add("all_reduce", axes, payload, label="+".join(names), size=plan.size(axes) * self.copies)
            elif plan.tp > 1 and p.role == "key" and self.are_shared:
                # Irregular copies: each rank adds its part to the whole parameter, which all of tp then share.
                self.add("all_reduce", axes | {"tp"}, self.shared_elements(p) // n * GRADIENT_BYTES)
            else:
                self.add("all_reduce", axes, payload)

    # Activations, for each microbatch.

    def add_tensor_parallel(self):
        plan, layers = self.plan, self.model.layers
        m, activation = plan.microbatches, plan.tokens * self.model.hidden * plan.bytes
        # In and out of attention and MLP, forward and backward; embedding and head. Those that are parallel go out together:
        # each norm's result is gathered and its gradient scattered, the sum of both is scattered and its gradient gathered.
        per_block = self.model.parallel_norms + 1 if self.model.parallel_norms else 4
        borders = per_block * layers + 2
        if plan.sequence_parallel:
            self.add("all_gather", {"tp"}, activation, borders * m)
            self.add("reduce_scatter", {"tp"}, activation, borders * m)
        else:
            self.add("all_reduce", {"tp"}, activation, borders * m)
        # Cross-entropy: the maximum, then the sum of exponentials and the label's logit.
        self.add("all_reduce", {"tp"}, plan.tokens * 4, m)
        self.add("all_reduce", {"tp"}, plan.tokens * 8, m)

    def add_context_parallel(self):
        plan, model = self.plan, self.model
        c, times = plan.cp, model.layers * plan.microbatches
        slots = self.kv_slots if plan.tp > 1 else model.kv_heads
        keys = 2 * plan.tokens * slots * model.head_dim  # elements of keys and values on a rank
        if plan.cp_mode == "ring":
            self.add("permute", {"cp"}, keys * plan.bytes, 2 * (c - 1) * times)
            self.add("permute", {"cp"}, keys * GRADIENT_BYTES, (c - 1) * times)
        elif plan.cp_mode == "gather":
            self.add("all_gather", {"cp"}, c * keys * plan.bytes, 2 * times)
            self.add("reduce_scatter", {"cp"}, c * keys * GRADIENT_BYTES, times)
        else:
            queries = plan.tokens * up(model.heads, plan.tp) // plan.tp * model.head_dim
            repeated = keys // slots * up(slots, c) if slots < c else keys
            self.add("all_to_all", {"cp"}, (4 * queries + repeated) * plan.bytes, times)  # q, o, their gradients; k, v
            self.add("all_to_all", {"cp"}, repeated * GRADIENT_BYTES, times)

    def add_scalars(self):
        """Tokens and loss over all ranks that see other tokens; the norm over those that hold other gradients."""
        plan = self.plan
        self.add("all_reduce", plan.data_axes, 4, 2, label="scalar")
        self.add("all_reduce", plan.shard_axes | {"tp"}, 4, label="scalar")


def sent(model: Model, plan: Plan):
    """group -> kind -> bytes, as in metrics.jsonl."""
    return {group: dict(kinds) for group, kinds in sorted(Step(model, plan).sent.items())}


def sent_between_nodes(model: Model, plan: Plan):
    """Bytes of all groups and kinds together."""
    return Step(model, plan).between_nodes


def flops_per_token(model: Model, seq):
    """6 N + 12 L h s; N without tables that are only looked up."""
    tables = sum(
        p.elements() for p in model.outside if p.unit == "embedding" and not (model.tied and p.role == "vocabulary")
    )
    return 6 * (model.count() - tables) + 12 * model.layers * model.heads * model.head_dim * seq
