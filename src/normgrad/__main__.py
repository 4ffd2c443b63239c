"""``python -m normgrad`` prints what this process has: versions, the device, and how Triton runs kernels."""

from .doctor import doctor

doctor()
