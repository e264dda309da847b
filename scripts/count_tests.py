"""Sums the results that the test runners left in a folder; fails when a test failed or a runner left nothing."""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

RUNNERS = ("lit", "ctest", "frontend", "exec")


def count(path):
    """Returns (passed, failed, skipped) of a JUnit file; a file that cannot be read is one failure."""
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"{path.name}: {error}")
        return 0, 1, 0
    failed = sum(any(c.find(tag) is not None for tag in ("failure", "error")) for c in cases)
    skipped = sum(c.find("skipped") is not None for c in cases)
    return len(cases) - failed - skipped, failed, skipped


def main():
    folder = pathlib.Path(sys.argv[1])
    total = [0, 0, 0]
    for runner in RUNNERS:
        counts = count(folder / f"{runner}.xml")
        print(f"{runner}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped")
        total = [a + b for a, b in zip(total, counts, strict=True)]
    for index, name in enumerate(("passed", "failed")):
        if (folder / name).exists():
            total[index] += len((folder / name).read_text().split())
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    sys.exit(1 if total[1] or not total[0] else 0)


main()
