"""Files that a command will write, tried before the work whose result they get."""

from __future__ import annotations

from pathlib import Path


def check_file(option, file) -> None:
    """Nothing, where the file can be written; what it holds stays as it is.

    Raises:  ValueError naming the option, what it got and why that cannot be written
    """
    path, needs = Path(file), "needs the name of a file"
    if path.is_dir():
        raise ValueError(f"{option}: got {str(file)!r}, which is a folder; {needs}")
    if not path.parent.is_dir():
        raise ValueError(f"{option}: got {str(file)!r}, whose folder does not exist; {needs}")
    if path.exists() and not path.is_file():
        return  # a pipe or a device waits for its reader when it is opened
    new = not path.exists()
    try:
        path.open("a").close()
    except OSError as error:
        raise ValueError(f"{option}: got {str(file)!r}, which cannot be written ({error.strerror}); {needs}") from error
    if new:
        path.unlink()


def check_folder(option, folder) -> None:
    """Nothing, where the folder is there or can be made, and files can be made in it; it is made.

    Raises:  ValueError naming the option, what it got and why nothing can be written there
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "which is a file" if path.is_file() else f"which cannot be made ({error.strerror})"
        raise ValueError(f"{option}: got {str(folder)!r}, {why}; needs the name of a folder") from error
    trial = path / ".normgrad-trial"
    try:
        trial.touch()
    except OSError as error:
        why = f"where nothing can be written ({error.strerror})"
        raise ValueError(f"{option}: got {str(folder)!r}, {why}; needs the name of a folder") from error
    trial.unlink()
