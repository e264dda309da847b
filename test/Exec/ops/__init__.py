"""One module per family of nd operations: the cases that tests execute beside PyTorch."""

from . import composite, elementwise, index, optimizer, reduction, structural

FAMILIES = (structural, reduction, index, composite, optimizer, elementwise)
CASES = [case for family in FAMILIES for case in family.cases()]
