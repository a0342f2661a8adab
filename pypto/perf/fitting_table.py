"""A table that leaves columns out where a terminal is narrow: a figure is whole or not there, never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

Cell = str | Text
_ENDLESS: Final = 10_000  # columns


@dataclass
class FittingTable:
    """Columns ``titles`` and rows of as many cells; the first column is aligned to the left if ``named``.

    ``spare`` are the columns that may be left out, the most dispensable first; a line below says which were.
    """

    titles: Sequence[str]
    spare: Sequence[str] = ()
    named: bool = True
    rows: list[Sequence[Cell]] = field(default_factory=list)

    def add_row(self, *cells: Cell) -> None:
        self.rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unlimited = options.update(width=_ENDLESS)
        for count in range(len(self.spare) + 1):
            table = self._table(self.spare[:count])
            if Measurement.get(console, unlimited, table).maximum <= options.max_width:
                break
        yield table
        if count:
            left_out = [title for title in self.titles if title in self.spare[:count]]
            yield Text(f"too narrow for {', '.join(left_out)}", style="dim")

    def _table(self, without: Sequence[str]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        kept = [index for index, title in enumerate(self.titles) if title not in without]
        for index in kept:
            name = self.named and index == 0
            width = max(cell_len(str(cell)) for cell in (self.titles[index], *(row[index] for row in self.rows)))
            # what is still too wide is taken from the names
            least = None if name else width
            title = Text(self.titles[index])  # no markup: a title may be in brackets
            table.add_column(title, justify="left" if name else "right", no_wrap=True, min_width=least)
        for row in self.rows:
            table.add_row(*(row[index] for index in kept))
        return table
