"""The validation page: a table per family and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .operations import precision, precision_of_all
from .rows import Pair, Row, signs, summaries

_HEAD = """# How close the clock is

Written by `python -m pypto.sim.validate --write docs`. Published figures (`pypto/validation/published/`) beside
simulated ones; a *fitted* row was in view when a constant of the model was chosen, or the hardware notes derive one
from it; an *untouched* one was not. Rows that cannot be re-created are listed with the reason. A *doubted* row has a
figure that no published limit of the chip allows; it is simulated and counts, and a column says what the mean is
without such rows.

Workloads are kernels of this language (`pypto/validation/`), compiled for the chip and recorded without values,
but for the single operations (X1 to X3) and the bank tests (V3), whose extents and addresses are written into a
recording by hand. Kernels of the vendor's stream start on all cores together; picking them, starting a core and
reporting the end are added as the hardware notes give them (section 11), for products of the library also the time
before its first transfer (section 8). Figures of whole graphs are those of the modelled task runtime. Some rows are
timed on a part of the work and scaled; their names say so.

![simulated against published](validation.png)

## Mean absolute error

| family | use | rows | not re-created | mean error | without doubted rows |
|---|---|---|---|---|---|
"""

_COLUMNS = "| case | unit | published | simulated | ratio | use |"
_PAIR_COLUMNS = "| change | published | simulated | sign |"
_LIMITS = {
    "matrix products": (("G1", "G2", "G8"), 0.15), "flash attention": (("A1", "A2", "A4"), 0.20),
    "vector and copies": (("V1", "V2", "V3", "V4", "V6", "V7"), 0.15), "runtime": (("R1", "R2", "R3"), 0.20),
}  # fmt: skip
_PRECISIONS = {"X1": 0.90, "X3": 0.95}


def group_errors(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Mean absolute error of the groups that have a limit, and the limit."""
    found = {}
    for name, (families, limit) in _LIMITS.items():
        errors = [row.error for row in rows if row.family in families and row.error is not None]
        if errors:
            found[name] = sum(errors) / len(errors), limit
    return found


def markdown(rows: Sequence[Row], pairs: Sequence[Pair]) -> str:
    """The whole page."""
    lines = [_HEAD.rstrip()]
    for one in summaries(rows):
        means = f"{percent(one.mean_error)} | {percent(one.mean_error_undoubted)}"
        lines.append(f"| {one.family} | {one.use} | {one.rows} | {one.missing} | {means} |")
    lines += ["", "| group | families | mean error | asked for |", "|---|---|---|---|"]
    for name, (error, limit) in group_errors(rows).items():
        lines.append(f"| {name} | {', '.join(_LIMITS[name][0])} | {error:.1%} | {limit:.0%} |")
    lines += ["", *(f"- {line}" for line in precisions(rows))]
    lines += ["", *_pair_lines(pairs)]
    for family in dict.fromkeys(row.family for row in rows):
        lines += ["", f"## {family}", "", _COLUMNS, "|---|---|---|---|---|---|"]
        lines += [_line(row) for row in rows if row.family == family]
    return "\n".join(lines) + "\n"


def percent(value: float | None) -> str:
    """A share as text; empty when there is none."""
    return "" if value is None else f"{value:.1%}"


def precisions(rows: Sequence[Row]) -> list[str]:
    """Mean precision of the families of single operations: of all rows, and of those whose figure is not in doubt."""
    found = []
    for family, asked in _PRECISIONS.items():
        mine = [row for row in rows if row.family == family]
        if not mine:
            continue
        doubted = sum(bool(row.doubt) for row in mine)
        text = f"{family}: mean precision {precision_of_all(mine):.1%} over all {len(mine)} rows"
        if doubted:
            text += f", {precision(mine):.1%} without the {doubted} doubted ones"
        found.append(f"{text} (asked for {asked:.0%}; a row off by more than its figure counts 0)")
    return found


def _pair_lines(pairs: Sequence[Pair]) -> list[str]:
    right, wrong, missing = signs(pairs)
    return [
        "## Before and after",
        "",
        f"Changes somebody made and their effect: {right} of {right + wrong} come out with the right sign, "
        f"{missing} are not re-created.",
        "",
        _PAIR_COLUMNS,
        "|---|---|---|---|",
        *(_pair_line(pair) for pair in pairs),
    ]


def _pair_line(pair: Pair) -> str:
    published = f"{pair.before:.6g} -> {pair.after:.6g}"
    if pair.simulated_before is None or pair.simulated_after is None:
        return f"| {pair.family} {pair.case} | {published} | | {pair.reason} |"
    simulated = f"{pair.simulated_before:.6g} -> {pair.simulated_after:.6g}"
    return f"| {pair.family} {pair.case} | {published} | {simulated} | {'right' if pair.right else 'wrong'} |"


def _line(row: Row) -> str:
    if row.simulated is None or row.ratio is None:
        return f"| {row.case} | {row.unit} | {row.published:g} | | | {row.reason} |"
    use = f"{row.use}; doubted: {row.doubt}" if row.doubt else row.use
    return f"| {row.case} | {row.unit} | {row.published:.6g} | {row.simulated:.6g} | {row.ratio:.3f} | {use} |"


def picture(rows: Sequence[Row], path: Path) -> None:
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
