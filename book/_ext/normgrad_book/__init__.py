"""The Sphinx extension of this book."""

from importlib import import_module

# In this order: what is noted first is there for those after it.
MODULES = (
    "repository",
    "mathjax",
    "pictures",
    "live",
    "live_cells",
    "workbench",
    "execution",
    "folded",
    "equations",
    "guard",
    "derived",
    "ledger",
    "ledger_page",
    "objects",
    "search",
    "notebooks",
    "docstrings",
    "reading_time",
    "tested",
    "printed",
    "access",
    "alone",
    "lettered",
)


def setup(app):
    for name in MODULES:
        import_module(f".{name}", __name__).setup(app)
    return {
        "version": "1",
        "env_version": 1,
        "parallel_read_safe": False,
        "parallel_write_safe": True,
    }
