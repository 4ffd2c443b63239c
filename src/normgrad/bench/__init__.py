"""Benchmarks: ratios measured in one run. ``python -m normgrad.bench cpu``."""
