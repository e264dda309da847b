"""Few cases in which all pairs of values meet."""

import itertools
import random


def pairs(case):
    """The pairs of (factor, value) in a case; None is no value."""
    return set(map(frozenset, itertools.combinations([item for item in case.items() if item[1] is not None], 2)))


def every_pair(factors):
    """All pairs of values of different factors, in the order of the factors."""
    values = [(name, value) for name in factors for value in factors[name] if value is not None]
    return [frozenset(pair) for pair in itertools.combinations(values, 2) if pair[0][0] != pair[1][0]]


def covering(factors, allowed, tries=40):
    """Cases, a value of each factor, in which every pair of values meets that `allowed` accepts.

    `allowed` judges partial cases and never accepts more once it has refused; whatever else a case has, the first factor leaves a
    value for each of the others. Greedy: a case starts with the first pair that is missing and takes, factor by factor, the value
    that adds most pairs; of several runs that break ties differently the shortest counts. The result is the same every time.
    """
    return min((_attempt(factors, allowed, random.Random(seed)) for seed in range(tries)), key=len)


def _attempt(factors, allowed, rng):
    missing, cases = dict.fromkeys(pair for pair in every_pair(factors) if allowed(dict(pair))), []
    while missing:
        first = next(iter(missing))
        case = dict(first)
        names = [name for name in factors if name not in case]
        rng.shuffle(names)
        for name in sorted(names, key=lambda name: name != next(iter(factors))):
            choices = [value for value in factors[name] if allowed(case | {name: value})]
            gain = {value: len(pairs(case | {name: value}) & missing.keys()) for value in choices}
            case[name] = rng.choice([value for value in choices if gain[value] == max(gain.values())])
        for pair in pairs(case):
            missing.pop(pair, None)
        assert first not in missing
        cases.append({name: case[name] for name in factors})
    return cases
