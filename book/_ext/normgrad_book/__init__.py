"""The Sphinx extension of this book."""

from . import (
    alone,
    derived,
    docstrings,
    equations,
    execution,
    ledger,
    ledger_page,
    mathjax,
    notebooks,
    report,
    repository,
    tested,
)

MODULES = (repository, mathjax, execution, equations, derived, ledger, ledger_page, notebooks, docstrings, report, tested)


def setup(app):
    for module in (*MODULES, alone):
        module.setup(app)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
