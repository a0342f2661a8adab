"""The published tables, as printed: one file per family under ``published/``."""

from __future__ import annotations

import csv
from importlib import resources

Line = dict[str, str]


def table(family: str) -> list[Line]:
    """The rows of a family, by column name."""
    text = resources.files(__package__).joinpath("published", f"{family.lower()}.tsv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))
