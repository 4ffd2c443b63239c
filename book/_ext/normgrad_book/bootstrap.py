"""The first cell of each notebook, which the book's own page does not have.

It runs before anything of normgrad is there, so all that finds and installs the wheel stands in it.
"""

from __future__ import annotations

from .wheel import file_name

SETUP = '''\
# @title Run this first: it installs what the chapter needs
# normgrad comes as it was when this chapter was built; torch and NumPy stay as they are.{triton}
# NORMGRAD_SOURCE may name another normgrad: a checkout, a wheel, or a URL for pip.
import importlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

{settings}

def pip_install(*what):
    """Installs it and nothing that it depends on. False, with pip's own words, where that fails."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *what]
    done = subprocess.run(command, capture_output=True, text=True)
    importlib.invalidate_caches()
    if done.returncode:
        print(done.stdout + done.stderr)
    return done.returncode == 0


def find_normgrad():
    """The version that is installed, and whether it is a checkout that someone works on."""
    try:
        found = importlib.metadata.distribution("normgrad")
    except importlib.metadata.PackageNotFoundError:
        return None, False
    return found.version, '"editable": true' in (found.read_text("direct_url.json") or "")


def find_wheel():
    """The wheel beside this notebook, in a folder above, or in a site unpacked here; otherwise the one on the site."""
    here = Path.cwd()
    near = [folder / place / WHEEL for folder in (here, *here.parents) for place in ("", "_sources")]
    near += here.glob("*/_sources/" + WHEEL)
    return next((str(path) for path in near if path.is_file()), SITE and SITE + WHEEL.replace("+", "%2B"))


source, (version, checkout) = os.environ.get("NORMGRAD_SOURCE"), find_normgrad()
if not source and checkout:
    print("normgrad is installed from a checkout, which stays as it is.")
elif source or version != VERSION:
    source = source or find_wheel()
    if not source:
        raise ModuleNotFoundError(
            f"Put {{WHEEL}} into this notebook's folder (in Colab: upload it); the page's rocket menu has it."
        )
    if not pip_install("--force-reinstall", source):
        raise ModuleNotFoundError(f"normgrad cannot be installed from {{source}}: download this chapter once more.")

import normgrad

version, checkout = find_normgrad()
if not checkout and normgrad.__version__ != version:
    raise RuntimeError(f"normgrad {{normgrad.__version__}} is loaded: restart the session to use {{version}}.")
{start}
normgrad.doctor()'''

TRITON = """
from normgrad.teaching import notebook

if wanted := notebook.missing_triton():
    pip_install(wanted)
notebook.start()
"""


def bootstrap(version, site="", pages="", triton=False) -> str:
    """The cell of one chapter.

    Arguments:  version of the wheel; site, the address of the folder that holds it, and pages, that of the chapter's
                page, each with its slash or empty; triton, whether a cell needs it
    """
    settings = {"VERSION": version, "WHEEL": file_name(version), "SITE": site}
    lines = [f'{name} = "{value}"' for name, value in settings.items()]
    if pages:
        lines.append(f'os.environ.setdefault("NORMGRAD_BOOK", "{pages}")')
    return SETUP.format(
        settings="\n".join(lines) + "\n",
        triton="\n# On Linux Triton comes too, where there is none." if triton else "",
        start=TRITON if triton else "",
    )
