"""The session's variables: what there is, told without running any code of the cells'.

A value's class may be a cell's own, and its __repr__, __len__ or __class__ may loop,
print, or change something; so may its metaclass's __eq__ and the names in its dict, and a
library's functions may be replaced. So classes are compared by identity, names only where
they are plain strings, attributes read from instances' dicts and by what is written in C,
and a text is made of built-in values alone.
"""

import array
import collections
import datetime
import itertools
import re
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

_flags = type.__dict__["__flags__"].__get__
_mro = type.__dict__["__mro__"].__get__
_members = type.__dict__["__dict__"].__get__
_HEAP = 1 << 9  # of a class that is made at run time: each of a cell's is


def _ids(*kinds):
    """Classes by identity: to compare or hash one may be its metaclass's code."""
    return frozenset(map(id, kinds))


_SIZED = _ids(str, bytes, bytearray, list, tuple, dict, set, frozenset, range, memoryview, collections.deque, array.array)
_PLAIN = _ids(type(None), type(Ellipsis), bool, float, complex)
_TEXTS = _ids(str, bytes, bytearray)
_DATES = _ids(datetime.date, datetime.timedelta)
_TIMES = _ids(datetime.datetime, datetime.time)
_ZONES = _ids(type(None), datetime.timezone)
_DATA = _ids(types.GetSetDescriptorType, types.MemberDescriptorType)
_BRACKETS = {
    id(kind): brackets
    for kind, brackets in (
        (list, "[]"), (tuple, "()"), (set, "{}"), (frozenset, "{}"), (dict, "{}"), (collections.deque, "[]"),
    )
}


def reply(shell):
    """The content of a variables_reply."""
    variables = sorted(_variables(shell), key=lambda pair: pair[0])
    until = monotonic() + WAIT
    found = [_variable(name, value, monotonic() < until) for name, value in variables[:MOST]]
    return {"status": "ok", "data": found, "total": len(variables)}


def _variables(shell):
    """The names that cells have set, and not IPython, with their values."""
    hidden = dict(_items(shell.user_ns_hidden))
    for name, value in _items(shell.user_ns):
        if not _IPYTHONS.fullmatch(name) and not (name in hidden and hidden[name] is value):
            yield name, value


def _items(names):
    """What a dict has by plain names: to look one up may be the code of another key."""
    if type(names) is dict:
        names = list(names.items())
    elif type(names) is types.MappingProxyType:  # a class's
        names = list(types.MappingProxyType.items(names))
    else:
        return []
    return [(name, value) for name, value in names if type(name) is str]


def _get(names, wanted):
    for name, value in _items(names):
        if name == wanted:
            return value
    return None


def _name(kind):
    return str.__str__(type.__dict__["__name__"].__get__(kind))  # may be of a class of a cell's


def _member(kind, name):
    """The first of that name in a class and its bases, and where it is written in C, else None."""
    for base in _mro(kind):
        member = _get(_members(base), name)
        if member is not None:
            return member if id(type(member)) in _C and member.__objclass__ is base else None
    return None


_C = _DATA | _ids(types.MethodDescriptorType, types.WrapperDescriptorType)


def _data(value, name):
    """An attribute by a getter that is written in C."""
    member = _member(type(value), name)
    return member.__get__(value) if id(type(member)) in _DATA else None


def _own(value, name):
    """What an instance itself has."""
    return _get(_data(value, "__dict__"), name)


def _method(value, name):
    """What a method returns that is written in C, of the value's class itself."""
    member = _member(type(value), name)
    if type(member) is types.MethodDescriptorType and member.__objclass__ is type(value):
        return member(value)
    return None


def _quiet(function, *args):
    """None where a library's value isn't whole, or a thread of a cell's changes it meanwhile."""
    try:
        return function(*args)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a panic of Rust's is no Exception
        return None


def _variable(name, value, look):
    kind = type(value)
    variable = {"name": _cut(name, NAME), "type": _cut(_name(kind), NAME), "size": None, "shape": None, "preview": ""}
    if look:
        variable["size"] = _quiet(_size, value, kind)
        variable["shape"] = _quiet(_shape, value, kind)
        variable["preview"] = _cut(_quiet(_preview, value, kind, variable["shape"]) or "", PREVIEW)
    return variable


def _size(value, kind):
    for base in _mro(kind):
        if id(base) in _SIZED:
            return base.__len__(value)
    return None


def _shape(value, kind):
    """Of an array, by a getter that is written in C; of a table, by what it consists of."""
    if axes := _axes(value):
        lengths = [_length(axis) for axis in reversed(axes)]
        return None if None in lengths else lengths
    if (frame := _own(value, "_df")) is not None:
        return _sizes(_method(frame, "shape"))
    if (series := _own(value, "_s")) is not None:
        return _sizes((_method(series, "len"),))
    if _asks(kind):
        return None
    return _sizes(_data(value, "shape"))


def _asks(kind):
    """Whether it is a tensor whose getters ask its class, which may be a cell's."""
    bases = _mro(kind)
    return any(_get(_members(base), "__torch_function__") is not None for base in bases) and len(bases) > 3


def _sizes(shape):
    if shape is None:
        return None
    sizes = list(tuple.__iter__(shape))[:64]
    return sizes if all(type(n) is int for n in sizes) else None


def _axes(value):
    """The axes of a table or series of pandas: columns and rows, or rows."""
    manager = _own(value, "_mgr")
    axes = _data(manager, "axes") or _own(manager, "axes")  # a series' has them itself
    return axes if type(axes) is list else None


def _labels(axis):
    """The array that an axis consists of."""
    labels = _own(axis, "_data")
    inner = _data(labels, "_ndarray")
    return labels if inner is None else inner


def _length(axis):
    if type(rows := _own(axis, "_range")) is range:
        return len(rows)
    labels = _labels(axis)
    if (shape := _sizes(_data(labels, "shape"))) is not None:
        return shape[0]
    labels = _own(labels, "_pa_array")
    length = _member(type(labels), "__len__")
    return length(labels) if type(length) is types.WrapperDescriptorType else None


def _preview(value, kind, shape, depth=0):
    if id(kind) in _PLAIN:
        return repr(value)
    if kind is int:
        return _integer(value)
    if kind is range:
        numbers = (value.start, value.stop) if value.step == 1 else (value.start, value.stop, value.step)
        return f"range({', '.join(_integer(n) for n in numbers)})"
    if id(kind) in _TEXTS:
        return repr(value[:PREVIEW])
    if id(kind) in _DATES or id(kind) in _TIMES and id(type(value.tzinfo)) in _ZONES:
        return str(value)
    if id(kind) in _BRACKETS:
        return _container(value, kind, depth)
    if not _flags(kind) & _HEAP and any(_name(base) == "generic" for base in _mro(kind)):
        item = _member(kind, "item")  # of a number of NumPy's
        number = item(value) if type(item) is types.MethodDescriptorType else None
        return _preview(number, type(number), None, DEPTH)
    if shape is not None:
        return _array(value)
    if depth:
        return f"<{_name(kind)}>"
    if kind is types.ModuleType:
        name = _get(vars(value), "__name__")
        return name if type(name) is str else ""
    if kind is types.FunctionType:
        return _signature(value)
    return ""


def _integer(n):
    n = int.__index__(n)
    return repr(n) if n.bit_length() <= BITS else f"<{n.bit_length()} bits>"


def _container(value, kind, depth):
    left, right = _BRACKETS[id(kind)]
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
    if kind is set and not value or kind is frozenset or kind is collections.deque:
        return f"{_name(kind)}({text if value else ''})"
    return text


def _array(value):
    """Of an array the type of its elements, of a table the names of its columns."""
    if axes := _axes(value):
        return _columns(axes[0]) if len(axes) == 2 else ""
    if (frame := _own(value, "_df")) is not None:
        return ", ".join(_label(name) for name in (_method(frame, "columns") or ())[:ITEMS])
    dtype = _data(value, "dtype")
    if type(code := _data(dtype, "kind")) is str:
        if code in "biufc":
            return _name(_data(dtype, "type")).rstrip("_")
        return "object" if code == "O" else _data(dtype, "str")
    if dtype is None:
        return ""
    written = _member(type(dtype), "__repr__")
    return written(dtype) if type(written) is types.WrapperDescriptorType and written.__objclass__ is type(dtype) else ""


def _columns(axis):
    names = _own(axis, "_range")
    if type(names) is not range:
        names = _labels(axis)
        if _flags(type(names)) & _HEAP or _name(type(names)) != "ndarray":
            return ""
        names = type(names).tolist(names[:ITEMS])
    return ", ".join(_label(name) for name in names[:ITEMS])


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
    return f"{str.__str__(function.__name__)}({', '.join(names)})"


def _cut(text, most):
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate has no UTF-8
    return text if len(text) <= most else text[: most - 1] + "…"
