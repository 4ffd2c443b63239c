"""Where the packages lie: normgrad in src, and the figures beside the chapters that show them."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages("src"), "normgrad_figures"],
    package_dir={"": "src", "normgrad_figures": "book/figures"},
)
