"""Where the package lies: normgrad in src, the figures beside the chapters that show them; and the project's links."""

import os

from setuptools import find_packages, setup


def links():
    """Addresses for the index of packages; GitHub names the repository in its workflows, so a fork has its own."""
    repository = os.environ.get("GITHUB_REPOSITORY")
    home = f"https://github.com/{repository}"
    parts = {"Source": "", "Issues": "/issues", "Changelog": "/blob/main/CHANGELOG.md"}
    return {name: home + part for name, part in parts.items()} if repository else {}


setup(
    packages=[*find_packages("src"), "normgrad_figures"],
    package_dir={"": "src", "normgrad_figures": "book/figures"},
    project_urls=links(),
)
