"""The report: what was checked, what came out, what to look at next."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from ..equations import place
from ..task import Task
from ..words import INPUTS
from .files import to_json, to_junit
from .html import html
from .stage import AS_ABOVE, FOLLOWS, StageResult
from .text import diagnosis_lines
from .text import lines as text_lines

FEEDBACK = ("hint", "equation", "coefficients")
SEVERAL = 10_000  # printed characters that deserve a remark
PRINTED, PRINTED_LINES, PRINTED_WIDTH = "It printed, at first:", 6, 72


@dataclass
class Report:
    """What `check` returns.

    Args:  stages: StageResults; diagnoses: of the term attribution, each with misconception, equation, coefficients
           notes: remarks about what the code printed; feedback: how much of a diagnosis is shown
    """

    of: Task
    stages: list[StageResult] = field(default_factory=list)
    diagnoses: list = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    feedback: str = "coefficients"

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.of.name

    @property
    def points(self) -> int:
        """Points earned."""
        return sum(stage.points for stage in self.stages)

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
        raise KeyError(f"{name!r}, needs one of {', '.join(stage.name for stage in self.stages)}")

    def lines(self):
        """(stage, the sentence that a reader gets to see), with nothing said twice."""
        said = set()
        for stage in self.stages:
            known = not stage.full and stage.message in said
            yield stage, FOLLOWS if stage.explained else AS_ABOVE if known else stage.message
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
        asked = [each for each in failed if self[each].message.startswith(INPUTS)] or failed
        below = "\n".join(diagnosis_lines(self)) if asked[:1] == [name] else ""
        return replace(self[name], message=f"{words[name]}\n{below}" if below else words[name])

    def note(self, printed) -> None:
        """Remarks on what one stage saw."""
        if printed[0] > SEVERAL:
            self._remark("Your code prints a lot; only the beginning was read.")
        text = printed[1].strip("\n")
        if text.strip() and not any(note.startswith(PRINTED) for note in self.notes):
            shown = [line[:PRINTED_WIDTH] for line in text.splitlines()[:PRINTED_LINES]]
            more = [] if "\n".join(shown) == text and printed[0] <= len(printed[1]) else ["..."]
            self._remark("\n".join([PRINTED, *shown, *more]))

    def _remark(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def shown(self, diagnosis) -> dict:
        """The parts of a diagnosis that the feedback level shows: hint, equation, page, number, implemented, right."""
        parts = {"title": diagnosis.title, "hint": diagnosis.hint}
        level = FEEDBACK.index(self.feedback)
        if level >= 1 and diagnosis.equation:
            page, number = place(diagnosis.equation)
            parts |= {"equation": diagnosis.equation, "page": page, "number": number}
        if level >= 2 and diagnosis.implemented:
            parts |= {"implemented": diagnosis.implemented, "right": diagnosis.right}
            parts |= {"where": diagnosis.where} if diagnosis.where else {}
        return parts if level else {"hint": diagnosis.hint}

    def explained(self):
        """The shown parts of all diagnoses, with nothing said twice; "new" tells whether a heading is due."""
        head, formula, said = None, None, set()
        for diagnosis in self.diagnoses:
            parts = self.shown(diagnosis)
            new = head != (parts.get("title"), parts["hint"])
            head = parts.get("title"), parts["hint"]
            if "implemented" in parts and parts["implemented"] == formula:
                parts = {name: words for name, words in parts.items() if name not in ("implemented", "right", "where")}
            formula = parts.get("implemented", formula)
            if "where" in parts:
                left = [words for words in parts["where"] if words not in said]
                said.update(left)
                parts |= {"where": ", ".join(left)}
            if new or "equation" in parts:
                yield parts | {"new": new}

    def __str__(self):
        return "\n".join(text_lines(self))

    __repr__ = __str__

    def _repr_html_(self):
        return html(self)

    def to_dict(self) -> dict:
        """Plain data, for JSON."""
        stages = [asdict(stage) for stage in self.stages]
        named = ("misconception", "equation", "coefficients")
        shown = {"hint": (), "equation": named[:2], "coefficients": named}[self.feedback]
        found = [{**self.shown(each), **{name: getattr(each, name) for name in shown}} for each in self.diagnoses]
        return {"task": self.task, "homework": self.of.homework, "points": self.points, "max_points": self.max_points,
                "stages": stages, "diagnoses": found, "notes": self.notes, "feedback": self.feedback}  # fmt: skip

    def to_json(self) -> str:
        """This report as JSON."""
        return to_json([self])

    def to_junit(self) -> str:
        """This report as a JUnit file."""
        return to_junit([self])
