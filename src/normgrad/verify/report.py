"""What the command prints of its verdicts: text, JSON or GitHub's annotations, and the list of what is not read."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .verdict import NOT_READ, PROVED, Verdict

FORMATS = ("text", "json", "github")
# of GitHub's workflow commands, https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions;
# what is escaped is in actions/toolkit, packages/core/src/command.ts
IN_MESSAGE = {"%": "%25", "\r": "%0D", "\n": "%0A"}
IN_PROPERTY = IN_MESSAGE | {":": "%3A", ",": "%2C"}
KEYS = ("file", "name", "reason")


@dataclass(frozen=True)
class Result:
    """What came of one request, or of a file.

    Args:  path: as it is shown; name, line: of the function, or where the verdict says what is wrong
           verdict: None where there is none, and error says why; seconds: that it took; against: the definitions
           is_known: whether a baseline lists it as not read; note: what else is to be said of it
    """

    path: str
    name: str = ""
    line: int = 1
    verdict: Verdict | None = None
    error: str = ""
    seconds: float = 0
    against: str = ""
    is_known: bool = False
    note: str = ""

    @property
    def is_unread(self) -> bool:
        """Whether a program is not read."""
        return self.verdict is not None and self.verdict.kind == NOT_READ

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.path}:{self.line}"

    def data(self) -> dict[str, Any]:
        """What JSON holds of it."""
        place = {"file": self.path, "name": self.name, "line": self.line}
        if self.verdict is None:
            return place | {"error": self.error}
        others = {
            "seconds": self.seconds,
            "against": self.against,
            "note": self.note,
            "known": self.is_known,
        }
        return self.verdict.data() | place | others

    def text(self, is_asked: bool = True) -> str:
        """What a terminal shows of it; is_asked: whether by a comment, whose function is said."""
        if self.verdict is None:
            return f"{self.place}: {self.error}"
        lines = [str(self.verdict), f"  checked against {self.against}"]
        if is_asked:
            lines.insert(0, f"{self.place}: {self.name}")
        if self.note:
            lines.append(f"  {self.note}")
        if self.is_known:
            lines.append("  the baseline lists it as not read")
        return "\n".join(lines)

    def annotation(self, fails: bool) -> str:
        """What GitHub shows beside its line; "" of what is proved."""
        if self.verdict is None:
            return annotation("error", self.error, self.path, self.line, "normgrad")
        if self.verdict.kind == PROVED:
            return ""
        level = "error" if fails else "warning"
        words = str(replace(self.verdict, assumptions=()))
        words = "\n".join(
            filter(None, [words, f"checked against {self.against}", self.note])
        )
        title = f"{self.name}: {self.verdict.kind}"
        return annotation(level, words, self.path, self.line, title)


def annotation(
    level: str, message: str, file: str = "", line: int | None = None, title: str = ""
) -> str:
    """One of GitHub's workflow commands, as ::error file=kernels.py,line=3::message."""
    properties = {"file": file, "line": line, "title": title}
    texts = [
        f"{name}={_escaped(str(value), IN_PROPERTY)}"
        for name, value in properties.items()
        if value
    ]
    head = " ".join([level, ",".join(texts)]).rstrip()
    return f"::{head}::{_escaped(message, IN_MESSAGE)}"


def _escaped(text, table):
    return text.translate(str.maketrans(table))


class Baseline:
    """What is known not to be read, in a JSON list of {"file", "name", "reason"}; files are told from its folder.

    Args:    path: of the file, None for none; write: whether it is to be written, and need not be there
    Raises:  ValueError for a file that is no such list
    """

    def __init__(self, path: Path | None, write: bool = False):
        self.path, self.pairs = path, {}
        if path is None or write and not path.exists():
            return
        try:
            rows = json.loads(path.read_text(encoding="utf8"))
        except (OSError, ValueError, RecursionError) as reason:
            raise ValueError(f"--baseline: {path}: {reason}") from None
        for row in rows if isinstance(rows, list) else [rows]:
            if not isinstance(row, dict) or not all(
                isinstance(row.get(key), str) for key in KEYS
            ):
                needs = "needs a list of objects with texts for file, name and reason"
                raise ValueError(f"--baseline: {path}: {needs}")
            self.pairs[row["file"], row["name"]] = row["reason"]

    def _key(self, result):
        folder = self.path.resolve().parent
        file = os.path.relpath(Path(result.path).resolve(), folder)
        return Path(file).as_posix(), result.name

    def holds(self, result: Result) -> bool:
        """Whether a program that is not read is known not to be."""
        is_listed = self.path is not None and self._key(result) in self.pairs
        return is_listed and result.is_unread

    def news(self, results: list[Result]) -> list[str]:
        """What has become of its entries, in words."""
        if self.path is None:
            return []
        unread = {self._key(result) for result in results if self.holds(result)}
        lines = []
        for result in results:
            key = self._key(result)
            if result.verdict is not None and key in self.pairs.keys() - unread:
                kind = result.verdict.kind
                lines.append(f"{self.path}: {key[0]}: {key[1]} is read now, and {kind}")
        return list(dict.fromkeys(lines))

    def write(self, results: list[Result]) -> int:
        """Write what is not read, beside the entries of other files; how many of the results that are."""
        checked = {self._key(result)[0] for result in results}
        rows = {key: why for key, why in self.pairs.items() if key[0] not in checked}
        unread = [result for result in results if result.is_unread]
        for result in unread:
            rows[self._key(result)] = result.verdict.why
        lines = [
            json.dumps(dict(zip(KEYS, (*key, why), strict=True)))
            for key, why in sorted(rows.items())
        ]
        text = "[\n" + ",\n".join(lines) + "\n]\n"
        self.path.write_text(text if lines else "[]\n", encoding="utf8")
        return len(unread)
