"""Mutants of what a rank executes: what a wrong lowering, schedule or plan of memory would have written.

A mutant edits the text of `nd-opt --nd-host-pipeline`, or of the step before where that is the form of the mistake. The
transport moves data in the wait, so what these change does not depend on which rank is faster.
"""

import dataclasses
import re
from collections.abc import Callable

from mutants import Step

BYTES = {"f32": 4, "bf16": 2, "i64": 8, "i32": 4, "i8": 1, "i1": 1}


class RankProgram(Step):
    """The lines of an rt.program; operations come behind all declarations."""

    def collective(self, *patterns):
        return self.find(r"= rt\.collective_start", *patterns)

    def moved(self, start, what):
        """The buffers that a collective reads (`ins`) or writes (`outs`)."""
        return re.search(rf" {what}\((.*?) : ", self.lines[start])[1].split(", ")

    def wait(self, start):
        return self.find(rf"rt\.wait {self.result(start)}$")

    def roots(self, text):
        """The memory that operands in a text lie in."""
        views = dict(re.findall(r"(%\d+) = rt\.view (%\d+) ", self.text()))
        return {views.get(name, name) for name in re.findall(r"%\d+", text)}

    def users(self, buffers, begin):
        """Lines of the operations behind a line that read or write any of the buffers."""
        roots = set().union(*(self.roots(buffer) for buffer in buffers))
        operations = r" rt\.(launch|gemm|attention|attention_grad|copy|collective_start|fill_zero) "
        found = [
            index
            for index in range(begin + 1, len(self.lines))
            if re.search(operations, self.lines[index]) and roots & self.roots(self.lines[index])
        ]
        assert found, f"nothing uses {buffers}"
        return found

    def move(self, index, target):
        """A line comes right behind another."""
        line = self.lines.pop(index)
        self.lines.insert(target + 1 if index > target else target, line)

    def place(self, buffer):
        """Where a buffer is in the arena."""
        return int(re.search(r" at (\d+) ", self.lines[self.find(rf"^ *{buffer} = rt\.buffer ")])[1])

    def size(self, buffer):
        *shape, element = re.search(r"memref<(\S+)>$", self.lines[self.find(rf"^ *{buffer} = rt\.buffer ")])[1].split(
            "x"
        )
        count = BYTES[element]
        for extent in shape:
            count *= int(extent)
        return count

    def share(self, buffer, other):
        """Both are in one place."""
        self.edit(self.find(rf"^ *{buffer} = rt\.buffer "), r" at \d+ ", f" at {self.place(other)} ")


@dataclasses.dataclass(frozen=True)
class RankMutant:
    name: str
    pitfalls: str
    model: str
    mesh: str
    edit: Callable
    by: str = ""  # the pass that refuses it; empty: by execution
    caught: str = ""  # with a message that has this
    options: tuple[str, ...] = ()
    moves: bool = True
    step: bool = False  # edits the step, not the rank's program


LAYER, AGAIN = (rf'nd\.unit = "model\.layers\.1{part}"' for part in ("", ", again"))


def wait_behind_reader(program):
    start = program.collective(LAYER)
    wait = program.wait(start)
    program.move(wait, program.users(program.moved(start, "outs"), wait)[0])


def wait_at_the_end(program):
    wait = program.wait(program.collective("reduce_scatter"))
    program.move(wait, program.find(r"^  }$") - 1)


def drop_wait(program):
    del program.lines[program.wait(program.collective(LAYER))]


def gather_behind_reader(program):
    start = program.collective(LAYER)
    wait = program.wait(start)
    reader = program.users(program.moved(start, "outs"), wait)[0]
    program.move(wait, reader)
    program.move(start, reader - 1)


def reduce_before_gradient(program):
    """The reduction starts, and is waited for, before its last gradient is computed."""
    start = program.collective("reduce_scatter")
    wait = program.wait(start)
    last = program.moved(start, "ins")[-1]
    first = program.users([last], 0)[0]
    program.move(start, first - 1)
    program.move(wait, first)


def reduce_behind_reader(program):
    """What is reduced in place is read before: nothing in a program of buffers says which of its values is meant."""
    start = program.collective("all_reduce", re.escape('axes = ["dp"]'))
    wait = program.wait(start)
    reader = program.users(program.moved(start, "outs"), wait)[-1]
    program.move(wait, reader)
    program.move(start, reader - 1)


def overwrite_what_is_sent(program):
    """Keys go around while attention writes its result to their memory."""
    start = program.collective("permute")
    wait = program.wait(start)
    attention = program.find(r"rt\.attention ")
    assert start < attention < wait
    result = re.search(r"outs\((%\d+), ", program.lines[attention])[1]
    (root,) = program.roots(result)
    (key,) = program.roots(program.moved(start, "ins")[0])
    program.share(root, key)


def gather_all_at_first(program):
    """A unit that backward gathers again is gathered, and waited for, when the step begins."""
    start = program.collective(AGAIN)
    wait = program.wait(start)
    first = program.find(r"= rt\.collective_start")
    program.move(start, first - 1)
    program.move(wait, first)


def start_at_first(program):
    program.move(program.collective(AGAIN), program.find(r"= rt\.collective_start") - 1)


def read_what_is_gone(program):
    """Backward takes what forward gathered, whose memory has been given to others."""
    forward, again = program.collective(LAYER), program.collective(AGAIN)
    kept = dict(zip(program.moved(forward, "ins"), program.moved(forward, "outs"), strict=True))
    for weight, buffer in zip(program.moved(again, "ins"), program.moved(again, "outs"), strict=True):
        program.replace(buffer, kept[weight], again + 1)


def share_while_alive(program):
    """The plan gives an activation that backward reads the memory of a later one."""
    gemms = [index for index, line in enumerate(program.lines) if " rt.gemm " in line]
    outputs = [program.roots(re.search(r" into (%\d+)", program.lines[index])[1]).pop() for index in gemms]
    last_use = {output: program.users([output], 0)[-1] for output in outputs}
    for index, output in zip(gemms, outputs, strict=True):
        for later, other in zip(gemms, outputs, strict=True):
            if index < later < last_use[output] and other != output and program.size(output) == program.size(other):
                program.share(other, output)
                return
    raise AssertionError("no two products are of one size")


def keep_gathered(step):
    """Backward reads what forward gathered, and the second gather of the unit is for nothing but one parameter."""
    forward, again = (step.find(r"= nd\.all_gather", unit) for unit in (LAYER, AGAIN))
    operands = step.operands(forward)
    for k, operand in enumerate(step.operands(again)[:-1]):
        step.replace(step.result(again, k), step.result(forward, operands.index(operand)), again + 1)


RANK_MUTANTS = [
    RankMutant("a wait is dropped", "25, 28", "llama", "fsdp2", drop_wait, "rt.collective_start",
               "must be waited for exactly once", moves=False),
    RankMutant("a gather is waited for behind its reader", "28", "llama", "fsdp2", wait_behind_reader,
               "rt-verify-collectives", "uses memory that a collective is receiving"),
    RankMutant("gradients are waited for at the end of the step", "28", "llama", "fsdp2", wait_at_the_end,
               "rt-verify-collectives", "uses memory that a collective is receiving"),
    RankMutant("what is sent is overwritten before the wait", "28", "llama", "cp2", overwrite_what_is_sent,
               "rt-verify-collectives", "writes memory that a collective is sending"),
    RankMutant("a gather starts behind its reader", "28", "llama", "fsdp2", gather_behind_reader, "rt-verify-memory",
               "rt.launch' op reads a buffer"),
    RankMutant("gradients are reduced before they are computed", "28", "llama", "fsdp2", reduce_before_gradient,
               "rt-verify-memory", "rt.collective_start' op reads a buffer"),
    RankMutant("gradients are reduced in place behind their reader", "14, 28", "llama", "dp2,fsdp2",
               reduce_behind_reader),
    RankMutant("a gather for backward starts when the step begins", "28", "llama", "fsdp2", start_at_first,
               "rt-verify-gathers", "units before its first reader", moves=False),
    RankMutant("a gather for backward is waited for when the step begins", "28", "llama", "fsdp2", gather_all_at_first,
               "rt-verify-memory", "whose memory holds something else"),
    RankMutant("backward reads a gathered unit that was given back", "28", "llama-deep", "fsdp2", read_what_is_gone,
               "rt-verify-memory", "whose memory holds something else"),
    RankMutant("two live buffers share memory", "28", "llama", "fsdp2", share_while_alive, "rt-verify-memory",
               "whose memory holds something else"),
    RankMutant("backward keeps what forward gathered", "28", "llama-deep", "fsdp2", keep_gathered, "rt-verify-gathers",
               "they have to be given back before", moves=False, step=True),
]  # fmt: skip
