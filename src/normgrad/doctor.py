"""What this process has: versions, device, and whether Triton compiles or interprets."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys
import types
import warnings

from .versions import FIRST_FOR_STRICT_NUMPY, STRICT_NUMPY, conflict_here, release

# The versions that the test suite runs on, lowest and highest; outside them the package may well work.
TESTED = {
    "numpy": ("1.26", "2.4"),
    "torch": ("2.6", "2.15"),
    "triton": ("3.2", "3.9"),
    "sympy": ("1.13", "1.14"),
    "numba": ("0.60", "0.68"),
}
# The Triton that each torch declares as its own on Linux. A torch that is not here gets the newest.
PAIRS = {
    "2.6": "3.2.0",
    "2.7": "3.3.1",
    "2.8": "3.4.0",
    "2.9": "3.5.1",
    "2.10": "3.6.0",
    "2.11": "3.6.0",
    "2.12": "3.7.1",
    "2.13": "3.7.1",
    "2.14": "3.8.0",
    "2.15": "3.9.0",
}


def fitting_triton(torch_version, numpy_version):
    """What pip installs beside torch and NumPy: the Triton that this torch declares, or the newest.

    Where it has to be installed there is no GPU as a rule, so its interpreter must also get along with NumPy.

    Arguments:  torch_version, numpy_version, as the two give them
    Returns:    a requirement, as "triton==3.7.1" or "triton"
    """
    pair = PAIRS.get(".".join(map(str, release(torch_version))))
    if pair and release(numpy_version) >= STRICT_NUMPY:
        pair = max(pair, FIRST_FOR_STRICT_NUMPY, key=release)
    return f"triton=={pair}" if pair else "triton"


def missing_triton():
    """What pip must install so that the kernels run, or nothing where they run or cannot.

    Returns:  a requirement as fitting_triton gives it; None where Triton is installed, where torch, which it works
              for, is not, and on other systems than Linux, for which Triton is not made
    """
    if (
        installed("triton")
        or not installed("torch")
        or not sys.platform.startswith("linux")
    ):
        return None
    return fitting_triton(
        importlib.metadata.version("torch"), importlib.metadata.version("numpy")
    )


def installed(name):
    """Whether a module can be found by now, also one that pip brought a moment ago."""
    importlib.invalidate_caches()
    return importlib.util.find_spec(name) is not None


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _no_triton():
    requirement = missing_triton()
    remedy = f" (pip install --no-deps {requirement})" if requirement else ""
    if platform.system() != "Linux":
        remedy = f" (it is not made for {platform.system()})"
    return f"not installed{remedy}; a chapter's notebook skips the cells that need it, and goes on"


def _remark(name, version):
    low, high = TESTED[name]
    if name == "triton" and version is None:
        return _no_triton()
    if version is None:
        return f"not installed; the parts that need it say so (pip install {name})"
    if not release(low) <= release(version) <= release(high):
        return f"{version}, outside the tested range {low} to {high}"
    return version


def _failure(module):
    """Why a library that is installed does not import; nothing where it does."""
    try:
        importlib.import_module(module, __package__)
    except (
        ImportError,
        OSError,
    ) as error:  # OSError: a shared library of its own is missing
        return f"installed, but it does not import: {' '.join(str(error).split())}"
    return ""


def _torch_lines():
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gpu = torch.cuda.is_available()
    yield "device", torch.cuda.get_device_name() if gpu else "CPU"
    if not _version("triton"):
        return
    # By way of the kernels, which choose Triton's mode before they import it.
    if why := _failure(".triton_kernels"):
        yield "triton", why
        return
    from .triton_kernels import INTERPRETED

    how = "compiler"
    if INTERPRETED:
        how = "interpreter (kernels run on the CPU, slowly)"
    yield "triton mode", how
    if INTERPRETED and conflict_here():
        yield "", conflict_here()


def doctor() -> None:
    """Print the versions found, the device, and Triton's mode.

    Returns:  nothing; one line for each finding, with what to do where something is missing or untested
    """
    from . import __version__

    lines = [("normgrad", __version__), ("python", platform.python_version())]
    lines += [(name, _remark(name, _version(name))) for name in TESTED]
    # Numba refuses a NumPy that is newer than itself only when it is imported.
    for name in ("numba", "torch"):
        if not _version(name):
            continue
        if why := _failure(name):
            lines.append((name, why))
        elif name == "torch":
            lines += _torch_lines()
    for name, finding in lines:
        print(f"{name:12} {finding}")


class _Callable(types.ModuleType):
    def __call__(self) -> None:
        self.doctor()


# Importing this module puts it where the package has the function of the same name; either can be called.
sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    doctor()
