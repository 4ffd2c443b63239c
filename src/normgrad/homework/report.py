"""The report: what was checked, what came out, what to look at next; in 80 columns, as JSON."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import asdict, dataclass, field, replace

from ..mistakes.table import UNKNOWN
from . import equations
from .gravity import GRAVITY, deduction
from .html import FORMULAS, html
from .messages import INPUTS
from .task import Task

FOLLOWS, AS_ABOVE = "follows from the above", "as above"
WIDTH = 80
SIGN = re.compile(r"(?<=[:,] )([-+]) (?=\S)")


@dataclass(frozen=True)
class StageResult:
    """One stage: its points, whether it passed, and a sentence.

    Args:  stub: whether nothing is written yet; explained: whether values that are wrong in an earlier stage are enough
           of a reason
    """

    name: str
    points: int
    max_points: int
    passed: bool
    message: str
    stub: bool = False
    seconds: float = 0.0
    explained: bool = False

    @property
    def full(self) -> bool:
        """Whether it earned all its points."""
        return self.points == self.max_points

    def without_points(self, why: str) -> StageResult:
        """The same result with no points, and why."""
        return replace(self, points=0, message=why)


FEEDBACK = ("hint", "equation", "solution")
SEVERAL = 10_000  # printed characters that deserve a remark
PRINTED, PRINTED_LINES, PRINTED_WIDTH = "It printed, at first:", 6, 72


@dataclass
class Report:
    """What `check` returns.

    Args:  stages: StageResults; diagnoses: what the reading and the stages found, each with misconception, title, hint
           notes: remarks about what the code printed; feedback: how much of a diagnosis is shown
           flags: what a teacher may want to look at; it costs nothing, and the student's report has none of it
           measured: keys of the mistakes that a stage has seen in a run, which alone cost points
    """

    of: Task
    stages: list[StageResult] = field(default_factory=list)
    diagnoses: list = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    feedback: str = "solution"
    flags: list[str] = field(default_factory=list)
    measured: set[str] = field(default_factory=set)

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.of.name

    @property
    def points(self) -> int:
        """Points earned: those of the stages, less what a grave mistake costs beyond them."""
        return sum(stage.points for stage in self.stages) - self.deducted[0]

    @property
    def deducted(self) -> tuple[int, str]:
        """(points that a mistake costs beyond those of its stages, the sentence about it)."""
        earned = sum(stage.points for stage in self.stages)
        points, key = deduction(self.measured, earned, self.max_points)
        if not points:
            return 0, ""
        share, why = GRAVITY[key]
        why = "" if self.feedback == FEEDBACK[0] else f": {why}"
        return points, f"This mistake costs {share:.0%} of the points at least{why}."

    @property
    def max_points(self) -> int:
        """Points that can be earned."""
        return self.of.max_points

    @property
    def passed(self) -> bool:
        """Whether all points are earned."""
        return self.points == self.max_points

    @property
    def stub(self) -> bool:
        """Whether nothing is written yet."""
        return bool(self.stages) and all(stage.stub for stage in self.stages)

    def __getitem__(self, name: str) -> StageResult:
        """The stage of a name.

        Raises:  KeyError with the names there are
        """
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(
            f"{name!r}, needs one of {', '.join(stage.name for stage in self.stages)}"
        )

    def lines(self):
        """(stage, the sentence that a reader gets to see), with nothing said twice."""
        said = set()
        for stage in self.stages:
            known = not stage.full and stage.message in said
            yield (
                stage,
                FOLLOWS if stage.explained else AS_ABOVE if known else stage.message,
            )
            said.add(stage.message)

    def rows(self):
        """As lines, but one row for all stages that say the same again: their names, the sum of their points."""
        rows = {}
        for stage, words in self.lines():
            key = (words, stage.message) if words in (AS_ABOVE, FOLLOWS) else stage.name
            if key in rows:
                first = rows[key][0]
                stage = replace(first, name=f"{first.name}; {stage.name}", points=first.points + stage.points,
                                max_points=first.max_points + stage.max_points)  # fmt: skip
            rows[key] = stage, words
        return rows.values()

    def told(self, name: str) -> StageResult:
        """The stage of a name, its message all that the report says there.

        What is said about the term that is wrong stands at the first stage that asked for its numbers, or else at the
        first that failed.
        """
        words = {stage.name: message for stage, message in self.lines()}
        failed = [stage.name for stage in self.stages if not stage.full]
        asked = [
            each for each in failed if self[each].message.startswith(INPUTS)
        ] or failed
        below = "\n".join(diagnosis_lines(self)) if asked[:1] == [name] else ""
        return replace(
            self[name], message=f"{words[name]}\n{below}" if below else words[name]
        )

    def note(self, printed) -> None:
        """Remarks on what one stage saw."""
        if printed[0] > SEVERAL:
            self._remark("Your code prints a lot; only the beginning was read.")
        text = printed[1].strip("\n")
        if text.strip() and not any(note.startswith(PRINTED) for note in self.notes):
            shown = [line[:PRINTED_WIDTH] for line in text.splitlines()[:PRINTED_LINES]]
            more = (
                []
                if "\n".join(shown) == text and printed[0] <= len(printed[1])
                else ["..."]
            )
            self._remark("\n".join([PRINTED, *shown, *more]))

    def _remark(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def shown(self, diagnosis) -> dict:
        """The parts of a diagnosis that the feedback level shows; what was read of the student's text, always."""
        level, parts = FEEDBACK.index(self.feedback), {"hint": diagnosis.hint}
        difference = getattr(diagnosis, "difference", "")
        if level >= 1:
            parts["title"] = diagnosis.title
        unnamed = diagnosis.misconception == UNKNOWN
        if diagnosis.implemented and (level >= 2 or difference or unnamed):
            parts["implemented"] = diagnosis.implemented
        if level >= 1 and diagnosis.equation:
            page, number = equations.place(diagnosis.equation)
            parts |= {"equation": diagnosis.equation, "page": page, "number": number}
        if level >= 2:
            parts |= {"right": diagnosis.right, "difference": difference}
        return parts

    def explained(self):
        """The shown parts of all diagnoses, with nothing said twice; "new" tells whether a heading is due."""
        head, formula = None, None
        for diagnosis in self.diagnoses:
            parts = self.shown(diagnosis)
            new = head != (parts.get("title"), parts["hint"])
            head = parts.get("title"), parts["hint"]
            if "implemented" in parts and parts["implemented"] == formula:
                parts = {
                    name: words
                    for name, words in parts.items()
                    if name not in ("implemented", "right", "difference")
                }
            formula = parts.get("implemented", formula)
            if new or {"equation", "implemented"} & set(parts):
                yield parts | {"new": new}

    def __str__(self):
        return "\n".join(lines(self))

    __repr__ = __str__

    def _repr_html_(self):
        return html(self)

    def to_dict(self) -> dict:
        """Plain data, for JSON."""
        stages = [asdict(stage) for stage in self.stages]
        diagnoses = [self.shown(diagnosis) for diagnosis in self.diagnoses]
        if self.feedback != FEEDBACK[0]:
            for parts, diagnosis in zip(diagnoses, self.diagnoses, strict=True):
                parts |= {
                    "misconception": diagnosis.misconception,
                    "equation": diagnosis.equation,
                }
        return {"task": self.task, "homework": self.of.homework, "points": self.points, "max_points": self.max_points,
                "stages": stages, "diagnoses": diagnoses, "notes": self.notes, "feedback": self.feedback,
                "flags": self.flags, "deducted": self.deducted[0]}  # fmt: skip

    def to_json(self) -> str:
        """This report as JSON."""
        return to_json([self])


def _wrap(text, indent, first=None, width=WIDTH):
    """Wrapped lines; no line ends between a sign and the term that it belongs to."""
    wrapped = textwrap.wrap(
        SIGN.sub("\\1\N{NO-BREAK SPACE}", text), width, initial_indent=indent if first is None else first,
        subsequent_indent=indent, break_long_words=True, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]


def _row(mark, words, points):
    """The lines of a stage: its points stand at the end of the last one."""
    *before, last = _wrap(words, "      ", mark, WIDTH - 6)
    return [*before, last.ljust(WIDTH - 5) + points.rjust(5)]


def lines(report):
    """The lines of one report."""
    task = report.of
    points = f"{report.points} of {report.max_points} points"
    yield f"{task.name}".ljust(WIDTH - len(points)) + points
    if report.stub:
        yield from _wrap(
            f"Not implemented yet: write {task.entry}, then check again. The signature:",
            "  ",
        )
        yield from _wrap(task.signature, "      ", "    ")
        return
    for stage, words in report.rows():
        mark = "ok  " if stage.full else "    " if stage.passed else "--  "
        short = words in (FOLLOWS, AS_ABOVE)
        name = f"{stage.name} ({words})" if short else stage.name
        yield from _row(f"  {mark}", name, f"{stage.points}/{stage.max_points}")
        if not stage.full and not short:
            yield from _wrap(words, "        ")
    points, words = report.deducted
    if points:
        yield from _row("  --  ", words, f"-{points}")
    yield from diagnosis_lines(report)
    for note in report.notes:
        words, *printed = note.split("\n")
        yield from _wrap(words, "  ")
        yield from (f"    {line}"[:WIDTH] for line in printed)


def diagnosis_lines(report):
    """The lines of all diagnoses."""
    for parts in report.explained():
        if parts["new"]:
            yield ""
            yield from _wrap(
                parts["title"] if "title" in parts else parts["hint"], "     ", "  => "
            )
            if "title" in parts:
                yield from _wrap(parts["hint"], "     ")
        for name, words in FORMULAS:
            if parts.get(name):
                first = f"     {words}:".ljust(15)
                yield from _wrap(parts[name], "               ", first)
        if "equation" in parts:
            page = f", page {parts['page']} of the book" if parts["page"] else ""
            yield f"     equation: {equations.shown(parts['equation'])}{page}"


def text(reports) -> str:
    """Several reports and their sum, for the shell."""
    blocks = [str(report) for report in reports]
    earned, most = (
        sum(report.points for report in reports),
        sum(report.max_points for report in reports),
    )
    total = f"{earned} of {most} points"
    return "\n\n".join([*blocks, f"{'total':{WIDTH - len(total)}}{total}"])


def to_json(reports) -> str:
    """Several reports as one JSON object with their sum, and as the text that a student reads."""
    whole = {
        "points": sum(report.points for report in reports),
        "max_points": sum(report.max_points for report in reports),
        "tasks": [report.to_dict() for report in reports],
        "text": text(reports),
    }
    return json.dumps(whole, indent=2, allow_nan=True)
