"""Data frames as tables: application/vnd.runtime.table+json.

A table is made beside what pandas and polars show themselves. Neither is
imported here: formatters are registered by name. Making a table never fails a
cell, never changes the data, and looks at no more of it than it shows.
"""

import base64
import datetime
import decimal
import enum
import itertools
import math
import numbers
import os
import struct
import time

from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

MIME = "application/vnd.runtime.table+json"
ROWS = int(os.environ.get("CELLARD_TABLE_ROWS") or 1000)
COLUMNS = int(os.environ.get("CELLARD_TABLE_COLUMNS") or 100)
# What one text, and all of a table, may hold in characters; how many elements of
# a list, and how deep; how long making it may take, in seconds of work and in all.
TEXT = 32 * 1024
TOTAL = 8 * 1024 * 1024
ITEMS, DEPTH = 100, 4
WORK, WAIT = 1.0, 5.0
# Past it a double doesn't hold every integer, and many readers of JSON read doubles.
EXACT = 2**53


class TableFormatter(BaseFormatter):
    format_type = Unicode(MIME)
    print_method = ObjectName("_repr_runtime_table_")
    _return_type = dict


def register(display_formatter):
    """Add tables to what a display formatter makes."""
    formatter = display_formatter.formatters[MIME] = TableFormatter(parent=display_formatter)
    for module in ("pandas", "pandas.core.frame"):
        formatter.for_type_by_name(module, "DataFrame", _guard(_pandas_frame))
    for module in ("pandas", "pandas.core.series"):
        formatter.for_type_by_name(module, "Series", _guard(_pandas_series))
    for module in ("polars", "polars.dataframe.frame"):
        formatter.for_type_by_name(module, "DataFrame", _guard(_polars_frame))
    for module in ("polars", "polars.series.series"):
        formatter.for_type_by_name(module, "Series", _guard(_polars_series))


def _guard(make):
    def table(value):
        try:
            return make(value)
        except Exception:
            return None  # the text and the HTML are there all the same

    return table


def _pandas_frame(frame):
    rows, width = frame.shape
    part = frame.iloc[:ROWS, :COLUMNS]
    names = [_label(name) for name in part.columns]
    columns = [_pandas_values(part.iloc[:, i]) for i in range(part.shape[1])]
    return _table(names, columns, _pandas_index(part.index), rows, width)


def _pandas_series(series):
    part = series.iloc[:ROWS]
    name = "0" if series.name is None else _label(series.name)
    return _table([name], [_pandas_values(part)], _pandas_index(part.index), len(series), 1)


def _pandas_values(series):
    """The column as (type or None, list of Python values)."""
    dtype = series.dtype
    if hasattr(dtype, "categories"):
        dtype = dtype.categories.dtype
    kind = getattr(dtype, "kind", "O")
    values = series.tolist()
    if kind == "f" and getattr(dtype, "itemsize", 8) < 8:
        values = [_shortest(value) for value in values]
    if str(dtype).startswith("str"):
        return "string", values
    return _KINDS.get(kind), values


_KINDS = {"b": "boolean", "i": "integer", "u": "integer", "f": "number", "M": "datetime", "m": "duration"}


def _pandas_index(index):
    """The labels of the rows, or None for those that only count from 0."""
    if not len(index) or type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1:
        return None
    return index.tolist()


def _polars_frame(frame):
    rows, width = frame.shape
    columns = [_polars_values(column) for column in frame.get_columns()[:COLUMNS]]
    return _table(frame.columns[:COLUMNS], columns, None, rows, width)


def _polars_series(series):
    return _table([series.name], [_polars_values(series)], None, len(series), 1)


def _polars_values(series):
    dtype = series.dtype
    name = getattr(dtype, "__name__", None) or type(dtype).__name__
    values = series.slice(0, ROWS).to_list()
    if name == "Float32":
        values = [_shortest(value) for value in values]
    return _polars_type(name), values


def _polars_type(name):
    if name.startswith(("Int", "UInt")):
        return "integer"
    if name.startswith(("Float", "Decimal")):
        return "number"
    return {
        "Boolean": "boolean",
        "String": "string",
        "Utf8": "string",
        "Categorical": "string",
        "Enum": "string",
        "Date": "datetime",
        "Datetime": "datetime",
        "Duration": "duration",
    }.get(name)


def _table(names, columns, index, rows, width):
    budget = _Budget()
    labels = None if index is None else []
    out = []
    for number in range(min(rows, ROWS)):
        row = [budget.cell(values[number]) for _, values in columns]
        label = None if index is None else budget.cell(index[number])
        if budget.spent():
            break
        out.append(row)
        if index is not None:
            labels.append(label)
    return {
        "columns": [budget.text(name) for name in names],
        "types": [kind or _infer(values) for kind, values in columns],
        "rows": out,
        "index": labels,
        "rowCount": rows,
        "truncated": len(out) < rows or len(names) < width or budget.cut,
    }


class _Budget:
    """Turns values into JSON, within bounds."""

    def __init__(self):
        self.cut = False
        self._left = TOTAL
        self._work = time.thread_time() + WORK
        self._wait = time.monotonic() + WAIT

    def spent(self):
        return self._left < 0 or time.thread_time() > self._work or time.monotonic() > self._wait

    def text(self, text):
        if len(text) > TEXT:
            self.cut = True
            text = text[: TEXT - 1] + "…"
        self._left -= len(text)
        return text

    def cell(self, value):
        self._left -= 1
        kind = type(value)  # most are of these, and there are many
        if kind is float:
            return value if value - value == 0 else None
        if kind is int and -EXACT <= value <= EXACT or kind is bool:
            return value
        if kind is str:
            return self.text(value)
        try:
            return self._json(value, 0)
        except Exception:
            return self._other(value)

    def _json(self, value, depth):
        if _missing(value):
            return None
        kind = _kind(value)
        if kind == "boolean":
            return bool(value)
        if kind == "integer":
            number = int(value)
            return number if -EXACT <= number <= EXACT else str(number)
        if kind == "number":
            return _number(value)
        if kind == "datetime" or isinstance(value, datetime.time):
            return value.isoformat()
        if kind == "duration":
            return _duration(value)
        if isinstance(value, str):
            return self.text(str.__str__(value))
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self.text(base64.b64encode(bytes(value[:TEXT])).decode("ascii"))
        return self._nested(value, depth)

    def _nested(self, value, depth):
        library = type(value).__module__.partition(".")[0]
        if library == "numpy" and not getattr(value, "ndim", 1):
            value = value.item()
            return self._json(value, depth + 1) if depth < DEPTH else self._other(value)
        if library == "numpy" and hasattr(value, "dtype"):
            items = value[:ITEMS]
        elif library == "pandas" and hasattr(value, "iloc") and getattr(value, "ndim", 0) == 1:
            items = value.iloc[:ITEMS].tolist()
        elif library == "polars" and hasattr(value, "to_list"):
            items = value.head(ITEMS).to_list()
        elif isinstance(value, dict):
            items = value.items()
        elif isinstance(value, (list, tuple, set, frozenset)):
            items = value
        else:
            return self._other(value)
        if depth == DEPTH:
            return "…"
        if len(value) > ITEMS:
            self.cut = True
        items = itertools.islice(items, ITEMS)
        if isinstance(value, dict):
            return {self.text(_label(key)): self._json(item, depth + 1) for key, item in items}
        return [self._json(item, depth + 1) for item in items]

    def _other(self, value):
        try:
            return self.text(str(value))
        except (Exception, SystemExit):
            return f"<{type(value).__name__}>"


def _missing(value):
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def _number(value):
    """As a JSON number; as text where a double isn't the same; null where JSON has none."""
    near = float(value)
    if not math.isfinite(near):
        return None
    if isinstance(value, decimal.Decimal) and decimal.Decimal(repr(near)) != value:
        return str(value)
    return near


def _duration(delta):
    """ISO 8601, with a sign before it where it is negative: P1DT2H3M4.5S."""
    nanoseconds = getattr(delta, "value", None)  # of a pandas Timedelta
    if nanoseconds is None:
        nanoseconds = (delta.days * 86400 + delta.seconds) * 10**9 + delta.microseconds * 1000
    else:
        nanoseconds = delta.as_unit("ns").value if hasattr(delta, "as_unit") else nanoseconds
    sign, nanoseconds = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    seconds, fraction = divmod(nanoseconds, 10**9)
    days, seconds = divmod(seconds, 86400)
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    text = f"{sign}P{days}D" if days else f"{sign}P"
    clock = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes)
    if seconds or fraction or not (days or clock):
        clock += f"{seconds}{f'.{fraction:09d}'.rstrip('0').rstrip('.')}S"
    return text + ("T" + clock if clock else "")


def _infer(values):
    """The type of a column of Python objects, by those that are shown."""
    kinds = {_kind(value) for value in values if not _missing(value)}
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "any"


def _kind(value):
    if isinstance(value, enum.Enum):
        return "any"
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):  # numpy's, too
        return "boolean"
    if isinstance(value, str) or type(value).__name__ in ("Period", "Interval", "UUID"):
        return "string"
    if isinstance(value, numbers.Integral):
        return "integer"
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        return "number"
    if isinstance(value, decimal.Decimal):
        return "number"
    if isinstance(value, datetime.date):  # a datetime is one
        return "datetime"
    if isinstance(value, datetime.timedelta):
        return "duration"
    return "any"


def _label(name):
    """A column's name as text; of several levels joined."""
    if isinstance(name, tuple):
        return " / ".join(part for part in map(_label, name) if part)
    if isinstance(name, str):
        return str.__str__(name)
    try:
        return str(name)
    except (Exception, SystemExit):
        return f"<{type(name).__name__}>"


def _shortest(value):
    """A number of 32 bits or less as the shortest decimal that stands for it."""
    if value is None or not math.isfinite(value):
        return value
    single = struct.pack("f", value)
    for digits in range(6, 9):
        near = float(f"{value:.{digits}g}")
        if struct.pack("f", near) == single:
            return near
    return value
