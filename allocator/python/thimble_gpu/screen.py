"""Rewrites a part of a terminal again and again; uses rich if it is installed."""

import sys


class Plain:
    """Uses two sequences that every terminal knows: move up some lines, clear what follows."""

    def __init__(self):
        self._lines = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        sys.stdout.flush()

    def show(self, rows):
        text = "".join(f"{label:<12} {rest}\n" for label, rest in rows)
        up = f"\x1b[{self._lines}F\x1b[J" if self._lines else ""
        sys.stdout.write(up + text)
        sys.stdout.flush()
        self._lines = text.count("\n")


class Rich:
    """The same with colours; cuts lines that do not fit instead of wrapping them."""

    def __init__(self):
        from rich import live, table, text  # pylint: disable=import-outside-toplevel
        self._table = table
        self._text = text
        self._live = live.Live(auto_refresh=False)

    def __enter__(self):
        self._live.__enter__()
        return self

    def __exit__(self, *error):
        self._live.__exit__(*error)

    def show(self, rows):
        grid = self._table.Table.grid(padding=(0, 1))
        grid.add_column(style="cyan", no_wrap=True)
        grid.add_column(no_wrap=True)
        for label, rest in rows:
            style = "bold" if label.isdigit() else ""
            grid.add_row(self._text.Text(label, style), self._text.Text(rest, style))
        self._live.update(grid, refresh=True)


def of_terminal():
    try:
        return Rich()
    except ImportError:
        return Plain()
