"""Benchmarks: bytes counted, times beside a copy in one run. ``python -m normgrad.bench --help``."""
