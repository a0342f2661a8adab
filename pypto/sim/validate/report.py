"""The validation page: a table per family and a picture."""

from __future__ import annotations

from pathlib import Path

from .rows import Row, summaries

_HEAD = """# How close the clock is

Written by `python -m pypto.sim.validate`. Published figures beside simulated ones; a *fitted* row was in view when a
constant of the model was chosen, an *untouched* one was not. Rows that cannot be re-created are listed with the reason.

![simulated against published](validation.png)

## Mean absolute error

| family | use | rows | not re-created | mean error |
|---|---|---|---|---|
"""

_COLUMNS = "| case | unit | published | simulated | ratio | use |"


def markdown(rows: list[Row]) -> str:
    """The whole page."""
    lines = [_HEAD.rstrip()]
    for one in summaries(rows):
        mean = "" if one.mean_error is None else f"{one.mean_error:.1%}"
        lines.append(f"| {one.family} | {one.use} | {one.rows} | {one.missing} | {mean} |")
    for family in dict.fromkeys(row.family for row in rows):
        lines += ["", f"## {family}", "", _COLUMNS, "|---|---|---|---|---|---|"]
        lines += [_line(row) for row in rows if row.family == family]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    if row.simulated is None or row.ratio is None:
        return f"| {row.case} | {row.unit} | {row.published:g} | | | {row.reason} |"
    return f"| {row.case} | {row.unit} | {row.published:.6g} | {row.simulated:.6g} | {row.ratio:.3f} | {row.use} |"


def picture(rows: list[Row], path: Path) -> None:
    """Simulated against published on logarithmic axes, one colour per family."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 5))
    for axis, unit in zip(axes, ("cycles", "us")):
        for family in dict.fromkeys(row.family for row in rows if row.unit == unit):
            mine = [row for row in rows if row.family == family and row.unit == unit and row.simulated]
            if mine:
                axis.scatter([r.published for r in mine], [r.simulated for r in mine], s=12, label=family)
        low, high = axis.get_xlim()
        axis.plot([max(low, 1), high], [max(low, 1), high], linewidth=0.8, color="black")
        axis.set(xscale="log", yscale="log", xlabel=f"published, {unit}", ylabel=f"simulated, {unit}")
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
