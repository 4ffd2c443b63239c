"""What the kernels compile to, and results files of times. ``python -m normgrad.bench compile --help``."""
