# The book and its checks. PYTHON is any Python from 3.11 on; everything is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: book page equations quick test notebooks browser types distributions lint clean

# The sources with their folders, which change when a file goes, and the commit, which the notebooks name.
SOURCES := _config.yml _toc.yml $(wildcard .git/logs/HEAD) \
  $(shell find book/ src/ -name __pycache__ -prune -o -name '*.egg-info' -prune -o -print)

book: _build/built

# --all: Sphinx forgets the warnings of pages that it does not read again, so -W must always see all of them.
# It costs seconds; the outputs of unchanged chapters come from the execution cache.
_build/built: .venv/installed $(SOURCES)
	$(BIN)/jupyter-book build . -W --keep-going -n --all
	touch $@

# One page by itself, as P=rms_norm: its cells are run and its equations checked; what points elsewhere is let be.
page: .venv/installed
	mkdir -p _build/page
	printf 'format: jb-book\nroot: book/$(P)\n' > _build/page/$(P).yml
	NORMGRAD_PAGE=$(P) $(BIN)/jupyter-book build . --toc _build/page/$(P).yml --path-output _build/page/$(P) --all --quiet
	@echo "_build/page/$(P)/_build/html/book/$(P).html"

# What the pages' cells derive, written to src/normgrad/symbolic/equations.json; a test compares the two.
equations: .venv/installed
	PYTHONPATH=book/_ext $(BIN)/python -m normgrad_book.equations_file

# Under a minute: the contract in NumPy and torch, mutants in NumPy, arguments, pages as texts, what their cells derive.
quick: .venv/installed
	$(PYTEST) -n logical --dist worksteal --quick

# With WHOLE=1 also what is sampled otherwise: seeds, slow shells, and changed coefficients of every step, of which
# .ci/run has more pages after this.
test: .venv/installed
	$(PYTEST) -n logical --dist worksteal -m "not site and not graders" \
	  $(if $(WHOLE),--whole --seeds 20,--ignore tests/test_derivation_cells.py)

# Every notebook that the site offers, in three environments: Colab's two lists of libraries, and one without Triton.
notebooks: book
	$(PYTEST) -n logical --dist loadfile tests/test_notebooks*.py

# The built site, read in a browser.
browser: book
	$(PYTEST) -n logical --dist loadfile tests/browser

# ruff, and the weight of each part of the code, which may not grow past its limit in tools/weight.json.
lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/python tools/weight.py --check

# The client of tests/typed_client.py, read by mypy, and by pyright, which npx fetches.
types: .venv/installed
	$(BIN)/python -m mypy --warn-unused-ignores tests/typed_client.py
	npx --yes pyright@1.1.414 --pythonpath $(BIN)/python tests/typed_client.py

# The source distribution and the wheel that is built from it, in dist, as a release has them.
distributions:
	rm -rf dist _build/distributions
	$(PYTHON) -m venv _build/distributions
	_build/distributions/bin/pip install --quiet build==1.6.1 twine==7.0.0
	_build/distributions/bin/python -m build
	_build/distributions/bin/twine check --strict dist/*

clean:
	rm -rf _build build dist

.venv/locked: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --requirement requirements.txt
	touch $@

.venv/installed: .venv/locked pyproject.toml
	$(BIN)/python -m pip install --no-deps --no-build-isolation --editable .
	touch $@
