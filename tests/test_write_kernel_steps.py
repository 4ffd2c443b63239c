"""The ten steps of *Write the kernel*: the last page's table holds the bytes that the pages before it count."""

import contextlib
import io
import linecache
import re

import page_cells

PAGES = "write_kernel", "write_kernel_residual", "write_kernel_backward"
LAST_CELLS = (
    "assert counted / least == counts",
    "assert together < apart",
    'report("step 9',
)


def run(page, last):
    """What the cells of a page print, up to the one with last in it, and their names."""
    printed = io.StringIO()
    with page_cells.as_on_a_page() as namespace, contextlib.redirect_stdout(printed):
        for cell in page_cells.page_cells.of_page(page_cells.ROOT / f"book/{page}.md"):
            name = f"<{page} {cell.place}>"
            linecache.cache[name] = (
                len(cell.python),
                None,
                cell.python.splitlines(keepends=True),
                name,
            )
            exec(compile(cell.python, name, "exec"), namespace)
            if last in cell.python:
                return printed.getvalue(), namespace
    raise AssertionError(f"{page} has no cell with {last}")


def test_the_table_holds_what_the_pages_count():
    """Steps 1 to 9; the last page itself holds step 10 against the watcher."""
    _, namespace = run("write_kernel_package_backward", "bytes_of[10]")
    table = {
        step: f"{asked / floor:.2f}"
        for step, (asked, floor) in namespace["bytes_of"].items()
    }
    assert list(table) == list(range(1, 11))
    printed = "".join(
        run(page, last)[0] for page, last in zip(PAGES, LAST_CELLS, strict=True)
    )
    counted = {
        int(step): times
        for step, times in re.findall(r"^step (\d+).*?: ([\d.]+) times", printed, re.M)
    }
    assert counted == {step: table[step] for step in range(1, 10)}
