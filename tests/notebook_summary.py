"""The table below a test run in which notebooks ran: where, how many, how many cells were skipped, how long."""

from normgrad.teaching.notebook import SKIPPED


def pytest_terminal_summary(terminalreporter):
    """What ran in each environment, when tests of notebooks ran."""
    reports = {}
    for report in terminalreporter.stats.get("passed", ()):
        for key, row in report.user_properties:
            if key == "notebook" and report.when == "call":
                reports.setdefault(row[0], []).append(row[1:])
    if not reports:
        return
    terminalreporter.section("notebooks")
    terminalreporter.line(
        f"{'environment':12} {'notebooks':>9} {'cells skipped':>13} {'seconds':>8}"
    )
    for name, rows in sorted(reports.items()):
        cells, seconds = sum(row[1] for row in rows), sum(row[2] for row in rows)
        terminalreporter.line(f"{name:12} {len(rows):9} {cells:13} {seconds:8.0f}")
    for name, rows in sorted(reports.items()):
        for chapter, cells, _ in sorted(rows):
            if cells:
                terminalreporter.line(f"{name:12} {chapter}: {cells} skipped")
    if any(cells for rows in reports.values() for _, cells, _ in rows):
        terminalreporter.line(f'Each skipped cell printed "{SKIPPED}"')
