"""Notebooks as students hand them in, made of the texts of their cells."""

import json


def notebook(*cells: str) -> str:
    """The text of a notebook with these code cells."""
    code = {"cell_type": "code", "outputs": [], "metadata": {}, "execution_count": None}
    made = [code | {"source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}
    )
