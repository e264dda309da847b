"""The helpers of the executed tests serve here too."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Exec"))
