"""The one exception that users see."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class ExportError(Exception):
    """Something in the user's model, files or arguments cannot be exported.

    `message` says what; `module` is the path of the module it happened in; `where` the line of the user's code;
    `remedy` what to do about it. `str()` gives all of them, one a line.
    """

    message: str
    module: str | None = None
    where: str | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.module}: {self.message}" if self.module else self.message]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.remedy:
            lines.append(f"  remedy: {self.remedy}")
        return "\n".join(lines)
