"""Citations as plain text: authors and year, linked to the work where the bibliography has its address."""

from __future__ import annotations

from sphinx.errors import ExtensionError


def bibliography(env):
    return env.get_domain("cite").bibdata.data.entries


def authors(entry) -> str:
    names = [
        " ".join(person.prelast_names + person.last_names)
        for person in entry.persons.get("author", ())
    ]
    if not names:
        return entry.fields.get("title", "")
    if len(names) < 3:
        return " and ".join(names)
    return f"{names[0]} et al."


def work(env, key, textual) -> str:
    """One cited work, as "Ba et al. (2016)" in a sentence and as "Ba et al., 2016" in brackets."""
    if key not in bibliography(env):
        raise ExtensionError(f"no work is listed under {key!r} in the bibliography")
    entry = bibliography(env)[key]
    year = entry.fields.get("year", "")
    shown = (
        f"{authors(entry)} ({year})"
        if textual
        else ", ".join(filter(None, [authors(entry), year]))
    )
    doi = entry.fields.get("doi")
    url = f"https://doi.org/{doi}" if doi else entry.fields.get("url")
    return f"[{shown}]({url})" if url else shown


def cited(env, role, keys) -> str:
    """The plain form of ``{cite:p}`` and its like."""
    textual = role in ("cite:t", "cite:ct")
    works = [work(env, key.strip(), textual) for key in keys.split(",")]
    return ", ".join(works) if textual else "(" + "; ".join(works) + ")"
