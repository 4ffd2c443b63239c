"""The Sphinx extension of this book."""

from . import docstrings, equations, execution, ledger, ledger_page, mathjax, notebooks, report, repository, tested

MODULES = (repository, mathjax, execution, equations, ledger, ledger_page, notebooks, docstrings, report, tested)


def setup(app):
    for module in MODULES:
        module.setup(app)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
