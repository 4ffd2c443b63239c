"""Where the book lives: its repository on GitHub, the commit of this build, and the address of the site."""

from __future__ import annotations

import os
import re
import subprocess
from html import escape
from urllib.parse import urlencode


def git(root, *arguments) -> str:
    """The output of a git command, or nothing where there is no git, no repository or no such thing in it."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def github_repository(root, environ=os.environ) -> str:
    """ "owner/name" from GITHUB_REPOSITORY, else from origin where that is on GitHub, else nothing.

    Only these two words are taken, so a token in origin's address does not reach the site.
    """
    if environ.get("GITHUB_REPOSITORY"):
        return environ["GITHUB_REPOSITORY"]
    origin = git(root, "remote", "get-url", "origin")
    match = re.search(r"github\.com[:/]([^/\s]+/[^/\s]+?)(?:\.git)?/?$", origin)
    return match[1] if match else ""


def site_address(repository) -> str:
    """The address of the repository's GitHub Pages, or nothing without a repository."""
    if not repository:
        return ""
    owner, name = repository.split("/")
    host = f"{owner.lower()}.github.io"
    return f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"


def configure(app, config):
    """Links to the repository where it is known, and none at all where it is not.

    Without this, Jupyter Book's default makes every link point to the repository of Jupyter Book itself.
    """
    root = app.srcdir
    config.book_repository = config.book_repository or github_repository(root)
    config.book_commit = config.book_commit or git(root, "rev-parse", "HEAD")
    config.html_baseurl = config.html_baseurl or site_address(config.book_repository)
    options = config.html_theme_options
    options["launch_buttons"] = {}
    options["extra_footer"] = "Text CC BY 4.0, code Apache-2.0." + (
        f" Built from commit {config.book_commit[:12]}." if config.book_commit else ""
    )
    options["use_repository_button"] = bool(config.book_repository)
    options.pop("repository_url", None)
    if config.book_repository:
        options["repository_url"] = f"https://github.com/{config.book_repository}"
        options["repository_branch"] = config.book_branch


def report_an_error(app, pagename, templatename, context, doctree):
    """In the page's footer, a link to the erratum form with the page and the commit filled in."""
    repository = app.config.book_repository
    if not repository or doctree is None:
        return
    title = app.env.titles[pagename].astext()
    form = {
        "template": "erratum.yml",
        "title": f"Erratum: {title}",
        "page": f"{title} ({pagename})",
        "commit": app.config.book_commit,
    }
    address = f"https://github.com/{repository}/issues/new?{urlencode(form)}"
    link = f'<a href="{escape(address)}">Report an error on this page</a>.'
    context["theme_extra_footer"] = f"{context['theme_extra_footer']} {link}"


def setup(app):
    app.add_config_value("book_repository", "", "html", str)
    app.add_config_value("book_commit", "", "", str)
    app.add_config_value(
        "book_package", "", "", str
    )  # where pyproject.toml lies, if not beside the book
    app.add_config_value("book_branch", "main", "html", str)
    app.add_config_value("book_site_branch", "gh-pages", "html", str)
    app.connect("config-inited", configure)
    app.connect("html-page-context", report_an_error)
