"""Tables, files and figures."""

import base64
import os
import unittest

from kernel import TABLE, Kernel, KernelTest


class Tables(KernelTest):
    def setUp(self):
        super().setUp()
        self.run_ok(
            "import datetime as dt, decimal, enum, numpy as np, pandas as pd, polars as pl\n"
            "class Odd:\n    def __str__(self): raise SystemExit('odd')\n    __repr__ = lambda self: 'Odd'\n"
            "class Kind(enum.Enum): A = 'a'"
        )

    def table(self, code):
        cell = self.run_ok(code)
        self.assertEqual(cell.stderr, "")
        self.assertIn("text/plain", cell.data)
        return cell.data[TABLE]

    def column(self, code):
        """The type and the values of a frame's one column."""
        table = self.table(code)
        self.assertEqual(len(table["columns"]), 1)
        return table["types"][0], [row[0] for row in table["rows"]]

    def test_a_frame(self):
        cell = self.run_ok("df = pd.DataFrame({'month': ['Jan', 'Feb'], 'revenue': [120, None]}); df")
        self.assertEqual(sorted(cell.data), [TABLE, "text/html", "text/plain"])
        self.assertEqual(
            cell.data[TABLE],
            {
                "columns": ["month", "revenue"], "types": ["string", "number"],
                "rows": [["Jan", 120.0], ["Feb", None]], "index": None, "rowCount": 2, "truncated": False,
            },
        )
        self.assertEqual(self.run_ok("display(df)").shown[0][TABLE]["rowCount"], 2)

    def test_pandas_columns(self):
        for code, kind, values in (
            ("[1, 2**53, 2**60, -2**60]", "integer", [1, 2**53, str(2**60), str(-(2**60))]),
            ("[1.5, float('nan'), float('inf'), -float('inf')]", "number", [1.5, None, None, None]),
            ("np.array([.1, .2], dtype='f4')", "number", [0.1, 0.2]),
            ("[True, False]", "boolean", [True, False]),
            ("pd.array([1, None], dtype='Int64')", "integer", [1, None]),
            ("pd.array([True, None], dtype='boolean')", "boolean", [True, None]),
            ("pd.array(['a', None], dtype='string')", "string", ["a", None]),
            ("['a', None]", "string", ["a", None]),
            ("pd.Categorical(['a', 'b', None])", "string", ["a", "b", None]),
            ("pd.Categorical([1, 2])", "integer", [1, 2]),
            ("pd.to_datetime(['2024-01-02 03:04:05', None])", "datetime", ["2024-01-02T03:04:05", None]),
            ("pd.to_datetime(['2024-07-01']).tz_localize('Europe/Berlin')", "datetime", ["2024-07-01T00:00:00+02:00"]),
            ("[dt.date(2024, 1, 2), None]", "datetime", ["2024-01-02", None]),
            ("pd.to_timedelta(['1 days 02:03:04.5', '-90s', '0s', None])", "duration", ["P1DT2H3M4.5S", "-PT1M30S", "PT0S", None]),
            ("pd.period_range('2024-01', periods=2, freq='M')", "string", ["2024-01", "2024-02"]),
            ("[decimal.Decimal('1.5'), decimal.Decimal('0.1000000000000000000001'), decimal.Decimal('NaN')]", "number",
             [1.5, "0.1000000000000000000001", None]),
            ("[b'ab', b'\\xff']", "any", ["YWI=", "/w=="]),
            ("[[1, [np.nan, 'x']], {'k': np.arange(2), 2: dt.date(2024, 1, 1)}]", "any", [[1, [None, "x"]], {"k": [0, 1], "2": "2024-01-01"}]),
            ("[1, 'a']", "any", [1, "a"]),
            ("[1 + 2j, Kind.A]", "any", ["(1+2j)", "Kind.A"]),
            ("[dt.time(1, 2), None]", "any", ["01:02:00", None]),
        ):
            with self.subTest(code):
                self.assertEqual(self.column(f"pd.DataFrame({{'c': {code}}})"), (kind, values))

    def test_objects_whose_text_fails(self):
        table = self.value(f"get_ipython().display_formatter.formatters['{TABLE}'](pd.DataFrame({{'c': [Odd(), [Odd()], 1]}}))['rows']")
        self.assertEqual(table, "[['<Odd>'], [['<Odd>']], [1]]")

    def test_names_and_indexes(self):
        for code, columns, index in (
            ("pd.DataFrame([[1, 2]], columns=['a', 'a'])", ["a", "a"], None),
            ("pd.DataFrame([[1, 2]], columns=['a', 3])", ["a", "3"], None),
            ("pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([('a', 'x'), ('b', '')]))", ["a / x", "b"], None),
            ("pd.DataFrame({'a': [1]}, index=['r'])", ["a"], ["r"]),
            ("pd.DataFrame({'a': [1, 2]})[1:]", ["a"], [1]),
            ("pd.DataFrame({'a': [1]}, index=pd.to_datetime(['2024-01-01']))", ["a"], ["2024-01-01T00:00:00"]),
            ("pd.DataFrame({'a': [1]}, index=pd.MultiIndex.from_tuples([('x', 1)]))", ["a"], [["x", 1]]),
            ("pd.Series([1, 2], name='s')", ["s"], None),
            ("pd.Series([1], index=['r'])", ["0"], ["r"]),
            ("pd.DataFrame()", [], None),
        ):
            with self.subTest(code):
                table = self.table(code)
                self.assertEqual((table["columns"], table["index"]), (columns, index))

    def test_a_subclass(self):
        self.assertEqual(self.column("class Mine(pd.DataFrame): pass\nMine({'a': [1]})"), ("integer", [1]))

    def test_a_huge_frame_is_cut(self):
        table = self.table("pd.DataFrame(np.zeros((300_000, 200)))")
        self.assertEqual((len(table["rows"]), len(table["columns"]), len(table["types"])), (1000, 100, 100))
        self.assertEqual((table["rowCount"], table["truncated"]), (300_000, True))
        table = self.table("pd.DataFrame({'t': ['x' * 1_000_000] * 900})")
        self.assertTrue(table["truncated"])
        self.assertLess(sum(len(row[0]) for row in table["rows"]), 16 << 20)
        table = self.table("pd.DataFrame({'a': [np.zeros((100_000, 100))]})")
        self.assertTrue(table["truncated"])

    def test_settings(self):
        with Kernel(env={"CELLARD_TABLE_ROWS": "2", "CELLARD_TABLE_COLUMNS": "1"}) as kernel:
            table = kernel.run("import pandas as pd\npd.DataFrame({'a': [1, 2, 3], 'b': [1, 2, 3]})").data[TABLE]
        self.assertEqual((table["columns"], table["rows"], table["truncated"]), (["a"], [[1], [2]], True))

    def test_the_data_is_left_alone(self):
        self.run_ok("df = pd.DataFrame({'a': [[1, 2]], 'b': [np.nan]}); before = df.copy(deep=True)\ndf")
        self.assertEqual(self.value("bool(df.equals(before)), df.a[0], df.dtypes.equals(before.dtypes)"), "(True, [1, 2], True)")

    def test_a_frame_that_fails_is_no_table(self):
        cell = self.run_ok("class Broken(pd.DataFrame):\n    @property\n    def iloc(self): raise RuntimeError('broken')\n"
                           "    __repr__ = lambda self: 'broken'\n    _repr_html_ = None\nBroken({'a': [1]})")
        self.assertEqual((cell.value, TABLE in cell.data, cell.stderr, cell.of("error")), ("broken", False, "", []))

    def test_polars(self):
        for code, kind, values in (
            ("[1, None]", "integer", [1, None]),
            ("pl.Series([2**60], dtype=pl.Int64)", "integer", [str(2**60)]),
            ("[1.5, float('nan'), None]", "number", [1.5, None, None]),
            ("pl.Series([.1], dtype=pl.Float32)", "number", [0.1]),
            ("['a', None]", "string", ["a", None]),
            ("pl.Series(['a'], dtype=pl.Categorical)", "string", ["a"]),
            ("[True, None]", "boolean", [True, None]),
            ("[dt.date(2024, 1, 2), None]", "datetime", ["2024-01-02", None]),
            ("[dt.datetime(2024, 1, 2, 3)]", "datetime", ["2024-01-02T03:00:00"]),
            ("[dt.timedelta(hours=30)]", "duration", ["P1DT6H"]),
            ("pl.Series(['1.10']).cast(pl.Decimal(10, 2))", "number", [1.1]),
            ("[[1, 2], [3]]", "any", [[1, 2], [3]]),
            ("[{'a': 1}, {'a': None}]", "any", [{"a": 1}, {"a": None}]),
            ("[b'ab']", "any", ["YWI="]),
        ):
            with self.subTest(code):
                self.assertEqual(self.column(f"pl.DataFrame({{'c': {code}}})"), (kind, values))
        cell = self.run_ok("pl.DataFrame({'a': range(5000), 'b': range(5000)})")
        self.assertIn("text/html", cell.data)
        table = cell.data[TABLE]
        self.assertEqual((table["columns"], len(table["rows"]), table["rowCount"], table["truncated"]), (["a", "b"], 1000, 5000, True))
        self.assertEqual(self.table("pl.Series('s', [1])")["columns"], ["s"])


class Files(KernelTest):
    def setUp(self):
        super().setUp()
        self.run_ok("from pathlib import Path")

    def write(self, name, data):
        with open(os.path.join(self.kernel.cwd, name), "wb") as f:
            f.write(data)

    def test_files_by_their_names(self):
        for name, data, kind, value in (
            ("a.csv", b"a,b\n1,2\n", "text/csv", "a,b\n1,2\n"),
            ("a.png", b"\x89PNG\r\n", "image/png", base64.b64encode(b"\x89PNG\r\n").decode()),
            ("a.svg", b"<svg/>", "image/svg+xml", "<svg/>"),
            ("A.HTML", b"<b>\xc3\xa9", "text/html", "<b>é"),
            ("a.json", b'{"a": [1, null]}', "application/json", {"a": [1, None]}),
            ("a.parquet", b"PAR1", "application/vnd.apache.parquet", "UEFSMQ=="),
            ("a", b"\0\1", "application/octet-stream", "AAE="),
            ("latin.csv", b"\xe9", "text/csv", "\ufffd"),
        ):
            with self.subTest(name):
                self.write(name, data)
                for code in (f"display(Path('{name}'))", f"display_file('{name}')"):
                    self.assertEqual(self.run_ok(code).shown, [{kind: value, "text/plain": name}])

    def test_text_is_its_own_text(self):
        self.write("a.txt", b"hello")
        self.assertEqual(self.run_ok("display(Path('a.txt'))").shown, [{"text/plain": "hello"}])

    def test_what_is_not_json_is_text(self):
        for data in (b"{", b'{"a": NaN}', b"[" * 100_000):
            self.write("bad.json", data)
            self.assertEqual(self.run_ok("display(Path('bad.json'))").shown, [{"text/plain": data.decode()}])

    def test_a_path_that_is_a_value_is_a_path(self):
        self.write("a.csv", b"a")
        self.assertEqual(self.run_ok("Path('a.csv')").data, {"text/plain": "PosixPath('a.csv')"})
        self.assertEqual(self.run_ok("display(Path('none.csv'), Path('.'))").shown,
                         [{"text/plain": "PosixPath('none.csv')"}, {"text/plain": "PosixPath('.')"}])

    def test_what_is_no_regular_file(self):
        self.run_ok("if not os.path.exists('pipe.csv'): os.mkfifo('pipe.csv')")
        self.assertEqual(self.kernel.run("display_file('pipe.csv')").error, "ValueError")
        self.assertEqual(self.run_ok("display(Path('pipe.csv'))").shown, [{"text/plain": "PosixPath('pipe.csv')"}])
        self.assertEqual(self.kernel.run("display_file('/dev/zero')").error, "ValueError")
        self.assertEqual(self.kernel.run("display_file('none.csv')").error, "FileNotFoundError")
        self.assertEqual(self.kernel.run("display_file('.')").error, "ValueError")

    def test_a_limit(self):
        with Kernel(env={"CELLARD_FILE_BYTES": "10"}) as kernel:
            kernel.run("from pathlib import Path\nPath('a.txt').write_text('x' * 10); Path('b.txt').write_text('x' * 11)")
            self.assertEqual(kernel.run("display(Path('a.txt'))").shown, [{"text/plain": "x" * 10}])
            cell = kernel.run("display(Path('b.txt'))")
            self.assertEqual(cell.status, "error")
            self.assertIn("larger than 10 bytes", cell.reply["evalue"])
            self.assertEqual(kernel.run("display_file('b.txt')").status, "error")

    def test_an_update_shows_a_file_too(self):
        self.write("b.csv", b"b")
        cell = self.run_ok("handle = display('first', display_id=True); handle.update(Path('b.csv'))")
        self.assertEqual(cell.of("update_display_data")[0]["data"]["text/csv"], "b")


class Figures(KernelTest):
    def test_figures_are_shown_at_the_end_of_the_cell(self):
        self.assertEqual(self.value("'matplotlib' in sys.modules"), "False")
        cell = self.run_ok("import matplotlib.pyplot as plt\n_ = plt.plot([1, 2, 3])")
        self.assertEqual([sorted(d) for d in cell.shown], [["image/png", "text/plain"]])
        self.assertEqual(cell.stderr, "")
        self.assertEqual(self.value("plt.get_fignums()"), "[]")

    def test_show_shows_where_it_is(self):
        cell = self.run_ok("import matplotlib.pyplot as plt\n_ = plt.plot([3, 2, 1])\nplt.show()\nprint('after')\nx = 5\nx")
        kinds = [t for t, _ in cell.messages if t in ("display_data", "stream", "execute_result")]
        self.assertEqual((kinds, cell.value), (["display_data", "stream", "execute_result"], "5"))

    def test_a_backend_of_ones_own(self):
        with Kernel(env={"MPLBACKEND": "agg"}) as kernel:
            self.assertEqual(kernel.run("import matplotlib.pyplot as plt\n_ = plt.plot([1])").shown, [])


if __name__ == "__main__":
    unittest.main()
