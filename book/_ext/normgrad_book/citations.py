"""Citations as plain text: authors and year, linked to the work where the bibliography has its address."""

from __future__ import annotations

from sphinx.errors import ExtensionError


def authors(entry) -> str:
    names = [
        " ".join(person.prelast_names + person.last_names)
        for person in entry.persons.get("author", ())
    ]
    if len(names) > 2:
        return f"{names[0]} et al."
    return " and ".join(names) or entry.fields.get("title", "")


def work(env, key) -> str:
    """One cited work, as "Ba et al., 2016"."""
    works = env.get_domain("cite").bibdata.data.entries
    if key not in works:
        raise ExtensionError(f"no work is listed under {key!r} in the bibliography")
    fields = works[key].fields
    shown = ", ".join(filter(None, [authors(works[key]), fields.get("year")]))
    url = fields.get("url")
    if "doi" in fields:
        url = f"https://doi.org/{fields['doi']}"
    return f"[{shown}]({url})" if url else shown


def cited(env, keys) -> str:
    """The plain form of ``{cite:p}``."""
    works = [work(env, key.strip()) for key in keys.split(",")]
    return f"({'; '.join(works)})"
