"""The session's variables, told without running any code of the cells'."""

import unittest

from kernel import Kernel, KernelTest

HOSTILE = """
import time
class Loop:
    def _loop(self, *args):
        calls.append('ran')
        while True: time.sleep(0.01)
    __repr__ = __str__ = __len__ = __iter__ = __hash__ = __bool__ = __eq__ = __format__ = __dir__ = _loop
    __getattribute__ = __getattr__ = _loop
    shape = size = dtype = __class__ = property(_loop)
class Meta(type):
    __name__ = __module__ = __mro__ = __dict__ = property(lambda c: calls.append('meta') or 1 / 0)
    def __instancecheck__(cls, other): calls.append('instance'); return True
    def __getattribute__(cls, name): calls.append(name); raise SystemExit
class Odd(metaclass=Meta): pass
class Str(str):
    def __repr__(self): calls.append('str')
    __len__ = __getitem__ = __str__ = __repr__
class List(list):
    __iter__ = __len__ = __repr__ = lambda self, *a: calls.append('list')
class Dict(dict):
    __iter__ = __len__ = __repr__ = items = lambda self, *a: calls.append('dict')
class Int(int):
    def __repr__(self): calls.append('int')
    bit_length = __repr__
calls = []
loop, odd, s, l, d, i = Loop(), type.__call__(Odd), Str('abc'), List([1, 2]), Dict(a=1), Int(7)
of_loops = [loop, {'k': loop}, (s, l, d, i)]
loop_keys = {1: loop}
"""

HOSTILE_NAMES = """
import sys, types, polars
calls, armed = [], []
def ran(what):
    if armed:
        calls.append(what)
        raise SystemExit
class Meta(type):
    def __eq__(self, other): ran('eq'); return self is other
    def __hash__(self): ran('hash'); return type.__hash__(self)
class Odd(metaclass=Meta): pass
odd, in_list = Odd(), [Odd()]
class Text(str):
    def __eq__(self, other): ran('key'); return str.__eq__(self, other)
    def _run(self, *args): ran('text'); return ''
    encode = __len__ = __format__ = __str__ = __repr__ = _run
    __hash__ = lambda self: str.__hash__(self)
class Named: pass
Named.__name__ = Text('Renamed')
named = Named()
def f(): pass
f.__name__ = Text('g')
Keyed = type('Keyed', (), {Text(n): 1 for n in ('shape', '_mgr', '_df', 'dtype', '__dict__')})
keyed = Keyed()
module = types.ModuleType('m')
module.__dict__.clear(); module.__dict__[Text('__name__')] = 'm'
class Args(Exception): shape = BaseException.__dict__['args']
class Number:
    def __int__(self): calls.append('int'); return 1
    __index__ = __int__
args = Args(Number())
frozen = polars.DataFrame({'a': [1]})
class Df(list):
    shape = list.sort
    columns = lambda self: calls.append('columns')
class Low:
    def __lt__(self, other): calls.append('lt'); return True
frozen._df = Df([Low(), Low()])
stand_in = types.ModuleType('pandas')
class DataFrame:
    _mgr = columns = property(lambda self: calls.append('frame') or sys.exit())
stand_in.DataFrame, frame = DataFrame, DataFrame()
real, sys.modules['pandas'] = sys.modules.get('pandas'), stand_in
class Hidden(dict):
    def get(self, *args): calls.append('hidden'); raise SystemExit
    items = __contains__ = __getitem__ = get
kept = get_ipython().user_ns_hidden
get_ipython().user_ns_hidden = Hidden(kept)
armed.append(1)
"""


class Variables(KernelTest):
    def setUp(self):
        super().setUp()
        self.run_ok("%reset -f")

    def variables(self):
        content, seen = self.kernel.variables()
        self.assertEqual(content["status"], "ok", content)
        self.assertEqual([kind for kind, _ in seen], ["status", "status"])  # busy and idle, nothing else
        self.assertEqual(content["total"], len(content["data"]))
        return {v.pop("name"): v for v in content["data"]}

    def test_what_there_is(self):
        self.run_ok(
            "import numpy as np, pandas as pd, polars as pl, datetime as dt, collections, array\n"
            "n, big, x, z, yes, none = 42, 10**5000, 1.5, 1j, True, None\n"
            "text, long, b = 'a\\nb', 'x' * 10_000, b'\\0'\n"
            "l, nested, t, s, empty = [1, 'a'], [[1, [2, [3]]], object()], (1,), {1}, set()\n"
            "d, many = {'a': 1.0, 'b': [None]}, list(range(100_000))\n"
            "o, q, r = collections.OrderedDict(a=1), collections.deque([1, 2]), range(3)\n"
            "a, zero, f8, when = np.zeros((3, 4)), np.array(1), np.float64(2.5), dt.datetime(2024, 1, 2, 3)\n"
            "def f(a, b=1, *args, c, **kw): hidden = 1\n"
            "class C: pass\n"
            "c = C()\n"
            "_mine = 1\n"
            "df, series = pd.DataFrame({'a': [1], 7: [2]}), pd.Series([1, 2])\n"
            "pf, ps = pl.DataFrame({'p': [1, 2], 'q': [3, 4]}), pl.Series([1])\n"
            "class Frame(pd.DataFrame): pass\n"
            "mine = Frame({'a': [1, 2, 3]})\n"
            "lone = '\\udc80'\n"
        )
        got = self.variables()
        for name, kind, size, shape, preview in (
            ("n", "int", None, None, "42"), ("x", "float", None, None, "1.5"), ("z", "complex", None, None, "1j"),
            ("yes", "bool", None, None, "True"), ("none", "NoneType", None, None, "None"),
            ("big", "int", None, None, "<16610 bits>"),
            ("text", "str", 3, None, "'a\\nb'"), ("b", "bytes", 1, None, "b'\\x00'"),
            ("l", "list", 2, None, "[1, 'a']"), ("nested", "list", 2, None, "[[1, […]], <object>]"),
            ("t", "tuple", 1, None, "(1,)"), ("s", "set", 1, None, "{1}"), ("empty", "set", 0, None, "set()"),
            ("d", "dict", 2, None, "{'a': 1.0, 'b': [None]}"),
            ("many", "list", 100_000, None, "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …]"),
            ("o", "OrderedDict", 1, None, ""), ("q", "deque", 2, None, "deque([1, 2])"), ("r", "range", 3, None, "range(0, 3)"),
            ("a", "ndarray", None, [3, 4], "float64"), ("zero", "ndarray", None, [], "int64"),
            ("f8", "float64", None, [], "2.5"), ("when", "datetime", None, None, "2024-01-02 03:00:00"),
            ("f", "function", None, None, "f(a, b, *args, c, **kw)"),
            ("C", "type", None, None, ""), ("c", "C", None, None, ""), ("_mine", "int", None, None, "1"),
            ("df", "DataFrame", None, [1, 2], "a, 7"), ("series", "Series", None, [2], ""),
            ("pf", "DataFrame", None, [2, 2], "p, q"), ("ps", "Series", None, [1], ""),
            ("mine", "Frame", None, [3, 1], "a"), ("np", "module", None, None, "numpy"),
        ):
            with self.subTest(name):
                self.assertEqual(got.pop(name, None), {"type": kind, "size": size, "shape": shape, "preview": preview})
        self.assertEqual(got["long"]["size"], 10_000)
        self.assertLessEqual(len(got["long"]["preview"]), 120)
        self.assertEqual(got["lone"]["size"], 1)
        self.assertEqual(sorted(got), ["Frame", "array", "collections", "dt", "lone", "long", "pd", "pl"])

    def test_what_the_kernel_put_there_is_not_theirs(self):
        self.assertEqual(self.variables(), {})
        self.run_ok("1\n2")
        self.run_ok("!true")
        self.run_ok("display(3); _i, _1 if '_1' in dir() else 0, __name__")
        self.assertEqual(self.variables(), {})
        self.run_ok("In = 'mine'")
        self.assertEqual(list(self.variables()), ["In"])

    def test_nothing_of_the_cells_runs(self):
        self.run_ok(HOSTILE)
        got = self.variables()
        self.assertEqual(self.value("calls"), "[]")
        for name, kind, size, preview in (
            ("loop", "Loop", None, ""), ("odd", "Odd", None, ""), ("s", "Str", 3, ""), ("l", "List", 2, ""),
            ("d", "Dict", 1, ""), ("i", "Int", None, ""), ("Odd", "Meta", None, ""),
            ("of_loops", "list", 3, "[<Loop>, {'k': <Loop>}, (<Str>, <List>, <Dict>, <Int>)]"),
            ("loop_keys", "dict", 1, "{1: <Loop>}"),
        ):
            with self.subTest(name):
                self.assertEqual(got[name], {"type": kind, "size": size, "shape": None, "preview": preview})

    def test_a_question_is_no_cell(self):
        before = self.run_ok("41").reply["execution_count"]
        for _ in range(3):
            self.kernel.variables()
        cell = self.run_ok("_, len(In) - 1, sorted(Out)[-1], _i")
        self.assertEqual(cell.reply["execution_count"], before + 1)
        self.assertEqual(cell.value, f"(41, {before + 1}, {before}, '41')")

    def test_many(self):
        self.run_ok("for i in range(5000): globals()[f'v{i:05}'] = i\n" "globals()['w' * 100_000] = 1\ndel i")
        content, _ = self.kernel.variables()
        self.assertEqual((len(content["data"]), content["total"]), (1000, 5001))
        self.assertEqual(content["data"][-1]["name"], "v00999")

    def test_nothing_of_the_cells_runs_by_classes_and_names(self):
        self.run_ok(HOSTILE_NAMES)
        content, _ = self.kernel.variables()
        self.run_ok("armed.clear()\nget_ipython().user_ns_hidden = kept\nsys.modules.pop('pandas')\nif real: sys.modules['pandas'] = real")
        self.assertEqual(content["status"], "ok", content)
        self.assertEqual(self.value("calls"), "[]")
        got = {v["name"]: (v["type"], v["shape"], v["preview"]) for v in content["data"]}
        for name, want in (
            ("odd", ("Odd", None, "")), ("in_list", ("list", None, "[<Odd>]")), ("named", ("Renamed", None, "")),
            ("f", ("function", None, "g()")), ("keyed", ("Keyed", None, "")), ("module", ("module", None, "")),
            ("args", ("Args", None, "")), ("frozen", ("DataFrame", None, "")), ("frame", ("DataFrame", None, "")),
        ):
            with self.subTest(name):
                self.assertEqual(got[name], want)

    def test_a_huge_range(self):
        self.run_ok("import sys\ngetattr(sys, 'set_int_max_str_digits', id)(0)\nhuge = range(1 << 30_000_000)")
        self.assertEqual(self.variables()["huge"]["preview"], "range(0, <30000001 bits>)")


class Features(unittest.TestCase):
    def test_it_says_that_it_can(self):
        with Kernel() as kernel:
            self.assertIn("cellard variables", kernel.info["supported_features"])


if __name__ == "__main__":
    unittest.main()
