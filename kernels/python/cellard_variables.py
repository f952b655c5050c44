"""The session's variables: what there is, told without running any code of the cells'.

A value's class may be a cell's own, and its __repr__, __len__ or __class__ may loop,
print, or change something. So a type's name is read by the slot of type itself, a
length only by the built-in classes' own methods, a shape by a descriptor that is written
in C, and a text is made of built-in values alone.
"""

import array
import collections
import contextlib
import datetime
import itertools
import re
import sys
import types
from time import monotonic

FEATURE = "cellard variables"

# What a list holds: variables, characters of a text, items of a container, levels of them.
MOST, NAME, PREVIEW, ITEMS, DEPTH = 1000, 128, 120, 10, 2
# How long making it may take, in seconds.
WAIT = 1.0
# Larger integers take long to write in decimal, and Python refuses some.
BITS = 1024

# IPython keeps these in the namespace: inputs, outputs, what a command returned.
_IPYTHONS = re.compile(r"_+|_i{1,3}|_i?\d+|_exit_code|__\w*__|_[iod]h")

_name = type.__dict__["__name__"].__get__
_mro = type.__dict__["__mro__"].__get__
_members = type.__dict__["__dict__"].__get__
_attribute = object.__getattribute__

_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range, memoryview, collections.deque, array.array)
_PLAIN = (type(None), type(Ellipsis), bool, float, complex, range)
_DATES = (datetime.date, datetime.timedelta)
_ZONES = (type(None), datetime.timezone)
_BRACKETS = {list: "[]", tuple: "()", set: "{}", frozenset: "{}", dict: "{}", collections.deque: "[]"}


def reply(shell):
    """The content of a variables_reply."""
    names = sorted(_names(shell))
    found = []
    until = monotonic() + WAIT
    for name in names[:MOST]:
        try:
            value = shell.user_ns[name]
        except KeyError:  # a thread of a cell's has removed it
            continue
        found.append(_variable(name, value, monotonic() < until))
    return {"status": "ok", "data": found, "total": len(names)}


def _names(shell):
    """The names that cells have set, and not IPython."""
    missing = object()
    for name, value in list(shell.user_ns.items()):
        if type(name) is not str or _IPYTHONS.fullmatch(name):
            continue
        if shell.user_ns_hidden.get(name, missing) is not value:
            yield name


def _variable(name, value, look):
    kind = type(value)
    variable = {"name": _cut(name, NAME), "type": _cut(_name(kind), NAME), "size": None, "shape": None, "preview": ""}
    if not look:
        return variable
    # What a thread of a cell's changes meanwhile, or a library's value that isn't whole, says
    # nothing.
    with contextlib.suppress(Exception):
        variable["size"] = _size(value, kind)
    with contextlib.suppress(Exception):
        variable["shape"] = _shape(value, kind)
    with contextlib.suppress(Exception):
        variable["preview"] = _cut(_preview(value, kind, variable["shape"]), PREVIEW)
    return variable


def _size(value, kind):
    for base in _mro(kind):
        if base in _SIZED:
            return base.__len__(value)
    return None


def _shape(value, kind):
    """Of an array, by a getter that is written in C; of a table, by what it consists of."""
    for base in _mro(kind):
        if base is _of("pandas", "DataFrame"):
            return list(reversed(_attribute(value, "_mgr").shape))
        if base is _of("pandas", "Series"):
            return list(_attribute(value, "_mgr").shape)
        if base is _of("polars", "DataFrame"):
            return list(_attribute(value, "_df").shape())
        if base is _of("polars", "Series"):
            return [_attribute(value, "_s").len()]
        getter = _members(base).get("shape")
        if type(getter) is types.GetSetDescriptorType:
            shape = getter.__get__(value)
            return [int(n) for n in tuple.__iter__(shape)][:64]
        if getter is not None:
            return None
    return None


def _of(module, name):
    """A class of a module, if that has been imported; None matches no class."""
    return vars(sys.modules[module]).get(name) if type(sys.modules.get(module)) is types.ModuleType else None


def _preview(value, kind, shape, depth=0):
    if kind in _PLAIN:
        return repr(value)
    if kind is int:
        return repr(value) if value.bit_length() <= BITS else f"<{value.bit_length()} bits>"
    if kind in (str, bytes, bytearray):
        return repr(value[:PREVIEW])
    if kind in _DATES or kind in (datetime.datetime, datetime.time) and type(value.tzinfo) in _ZONES:
        return str(value)
    if kind in _BRACKETS:
        return _container(value, kind, depth)
    numpy_number = _of("numpy", "generic")
    if numpy_number in _mro(kind) and _of("numpy", _name(kind)) is kind:
        number = numpy_number.item(value)
        return _preview(number, type(number), None, DEPTH)
    if shape is not None:
        return _array(value, kind)
    if depth:
        return f"<{_name(kind)}>"
    if kind is types.ModuleType:
        name = vars(value).get("__name__")
        return name if type(name) is str else ""
    if kind is types.FunctionType:
        return _signature(value)
    return ""


def _container(value, kind, depth):
    left, right = _BRACKETS[kind]
    if depth >= DEPTH:
        return f"{left}…{right}" if len(value) else left + right
    if kind is dict:
        items = [
            f"{_preview(k, type(k), None, depth + 1)}: {_preview(v, type(v), None, depth + 1)}"
            for k, v in itertools.islice(value.items(), ITEMS)
        ]
    else:
        items = [_preview(v, type(v), None, depth + 1) for v in itertools.islice(value, ITEMS)]
    if len(value) > ITEMS:
        items.append("…")
    text = left + ", ".join(items) + ("," if kind is tuple and len(value) == 1 else "") + right
    if kind is set and not value or kind in (frozenset, collections.deque):
        return f"{_name(kind)}({text if value else ''})"
    return text


def _array(value, kind):
    """Of an array the type of its elements, of a table the names of its columns."""
    if kind is _of("pandas", "DataFrame"):
        return ", ".join(_label(name) for name in value.columns[:ITEMS])
    if kind is _of("polars", "DataFrame"):
        return ", ".join(_attribute(value, "_df").columns()[:ITEMS])
    for base in _mro(kind):
        getter = _members(base).get("dtype")
        if type(getter) is types.GetSetDescriptorType:
            dtype = getter.__get__(value)
            if type(dtype).__module__.startswith(("numpy", "torch")):
                return str(dtype)
            return ""
    return ""


def _label(name):
    return name[:NAME] if type(name) is str else _preview(name, type(name), None, 1)


def _signature(function):
    """A function's name and the names of its parameters, as its code has them."""
    code = function.__code__
    names = list(code.co_varnames[: code.co_argcount])
    keywords = list(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
    rest = list(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    if code.co_flags & 0x04:
        names.append("*" + rest.pop(0))
    elif keywords:
        names.append("*")
    names += keywords
    if code.co_flags & 0x08:
        names.append("**" + rest.pop(0))
    return f"{function.__name__}({', '.join(names)})"


def _cut(text, most):
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate has no UTF-8
    return text if len(text) <= most else text[: most - 1] + "…"
