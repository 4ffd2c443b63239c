"""Reports for programs: as JSON and as JUnit."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape, quoteattr

from .text import text


def to_json(reports) -> str:
    """Several reports as one JSON object with their sum, and as the text that a student reads."""
    whole = {
        "points": sum(report.points for report in reports),
        "max_points": sum(report.max_points for report in reports),
        "tasks": [report.to_dict() for report in reports],
        "text": text(reports),
    }
    return json.dumps(whole, indent=2, allow_nan=True)


def to_junit(reports) -> str:
    """Several reports as a JUnit file: a suite a task, a case a stage."""
    suites = []
    for report in reports:
        cases = []
        for stage in report.stages:
            name = quoteattr(f"{stage.name} ({stage.points}/{stage.max_points})")
            failure = "" if stage.passed else f"<failure message={quoteattr(_plain(stage.message))}/>"
            cases.append(
                f'<testcase classname={quoteattr(report.task)} name={name} time="{stage.seconds:.3f}">'
                f"{failure}</testcase>"
            )
        failed = sum(not stage.passed for stage in report.stages)
        suites.append(
            f'<testsuite name={quoteattr(report.task)} tests="{len(cases)}" failures="{failed}">'
            f"<system-out>{escape(_plain(str(report)))}</system-out>{''.join(cases)}</testsuite>"
        )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>{"".join(suites)}</testsuites>\n'


def _plain(words) -> str:
    """A text without the control characters that XML cannot hold."""
    return "".join(letter if letter in "\n\t" or letter.isprintable() else "?" for letter in words)
