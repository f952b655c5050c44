"""Makes notebooks, runs them by nbclient, and holds what cellard made of them against it.

notebook.py make DIR           writes DIR/NAME.ipynb
notebook.py real FETCHED DIR   the same of real notebooks; DIR/NAME has what lies beside each
notebook.py compare DIR OUT SESSIONS [WORK]
                               runs each by nbclient, in WORK/NAME made anew of DIR/NAME if
                               WORK is given; OUT/NAME.ipynb must say the same, and so must
                               what an agent made of the session, SESSIONS/NAME.ipynb
"""
import datetime
import pathlib
import re
import shutil
import subprocess
import sys

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

SKIP, RAISES = {"tags": ["skip-execution"]}, {"tags": ["raises-exception"]}

NOTEBOOKS = {
    "streams": [
        new_markdown_cell("# Streams\n\nä ö 漢字 <b>&amp;</b>"),
        new_code_cell("print('a')\nprint('b', end='')"),
        new_code_cell("import sys\nprint('out', flush=True)\nprint('err', file=sys.stderr, flush=True)\nprint('out again')"),
        new_code_cell(""),
        new_code_cell("   \n"),
        new_code_cell("print('x' * 200_000)"),
        new_code_cell("1", metadata={"tags": ["other"], "keep": {"n": 1.50, "big": 12345678901234567890}}),
    ],
    "values": [
        new_code_cell("{'a': [1, 2], 'ü': None}"),
        new_code_cell("class H:\n  def _repr_html_(self): return '<p>a</p>\\n<p>b</p>'\n  def __repr__(self): return 'H'\nH()"),
        new_code_cell("from IPython.display import *\ndisplay(1, 2)\nHTML('<b>&</b>')"),
        new_code_cell("JSON({'a': {'b': [1.5, 10**20]}})"),
        new_code_cell("Image(bytes(range(256)) * 400, format='png')"),
        new_code_cell("display({'text/plain': 'x', 'image/svg+xml': '<svg>\\n</svg>', 'application/x-own+json': [1]}, raw=True)"),
        new_code_cell("Markdown('*m*'), Latex('$x$')"),
        new_code_cell("'y' * 60_000"),
        new_code_cell("7;"),
    ],
    "displays": [
        new_code_cell("from IPython.display import *\nh = display('one', display_id='d')"),
        new_code_cell("h.update('two')\nprint('between')\nh2 = display('again', display_id='d')"),
        new_code_cell("print('gone')\nclear_output()\nprint('stays')"),
        new_code_cell("print('gone')\nclear_output(wait=True)\nprint('stays')"),
        new_code_cell("for i in range(5):\n  clear_output(wait=True)\n  display(i)"),
        new_code_cell("print('kept')\nclear_output(wait=True)"),
    ],
    "metadata": [
        new_code_cell("from IPython.display import *\nh = display('a', display_id='m', metadata={'text/plain': {'isolated': True}, 'own': [1.5, None]})"),
        new_code_cell("h.update('b', metadata={'own': {}})"),
        new_code_cell("h.update('c')\ndisplay({'text/plain': 'x'}, raw=True, metadata={'text/plain': {}})"),
        new_code_cell("Image(bytes(range(256)) * 400, format='png', width=30, height=20)"),
        new_code_cell("class C:\n  def _repr_mimebundle_(self, **kw): return {'text/html': '<p>'}, {'text/html': {'isolated': True}}\nC()"),
        new_code_cell("%config InlineBackend.figure_formats = ['retina']\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);"),
    ],
    "errors": [
        new_code_cell("def f(): raise ValueError('no\\nluck')\nf()", metadata=RAISES),
        new_code_cell("raise SystemExit", metadata=SKIP),
        new_code_cell("1 +", metadata=RAISES),
        new_code_cell("print('goes on')"),
    ],
    "magics": [
        new_code_cell("%%capture c\nprint('captured')"),
        new_code_cell("c.stdout"),
        new_code_cell("%env CELLARD_EXAMPLE=1\n!echo from a shell $CELLARD_EXAMPLE"),
        new_code_cell("x = 1\nx?"),
        new_code_cell("import asyncio\nawait asyncio.sleep(0.01)\nprint('awaited')"),
    ],
    "bash": [
        new_code_cell("x=7; list=(a 'b c'); f() { echo \"f $1\"; }\nset -u"),
        # From stdout to stderr, and not back: that can come in another order.
        new_code_cell("for i in 1 2; do f \"$x$i\"; done; printf 'no end'\necho told >&2"),
        new_code_cell("printf '%s\\n' \"${list[@]}\" | sort -r"),
        new_code_cell("cat <<'EOF' | tr a-z A-Z\nä here-document\nEOF"),
        new_code_cell("echo before; echo \"$undeclared\"; echo never", metadata=RAISES),
        new_code_cell("(exit 3)", metadata=RAISES),
        new_code_cell("if true; then\n  fi", metadata=RAISES),
        new_code_cell("printf '<svg/>' | display - image/svg+xml\nprintf 'a,b\\n1,2\\n' > table.csv; display table.csv; rm table.csv"),
        new_code_cell("seq 100000"),
        new_code_cell("echo \"still $x\"; exit 0; echo never"),
    ],
    "r-own": [
        new_code_cell("x <- 7; f <- function(n) { cat('f', n, '\\n'); n }\nx"),
        new_code_cell("for (i in 1:3) { cat('out', i, '\\n'); display(i); message('told ', i); system(paste('echo child', i)) }\nf(x)"),
        new_code_cell("list(a = c(1.5, NA), b = factor(c('ä', '<b>')))"),
        new_code_cell("plot(1:3); cat('between\\n'); plot(3:1)"),
        new_code_cell("display(list('text/html' = '<p>1</p>'), display_id = 'd')\ndisplay(list('text/html' = '<p>2</p>'), display_id = 'd', update = TRUE)"),
        new_code_cell("cat('gone\\n'); getOption('jupyter.clear_output_func')(); cat('stays\\n')"),
        new_code_cell("cat('before\\n'); f(x); stop('no\\nluck')", metadata=RAISES),
        new_code_cell("log(-1)\nwarning('w')\n1 1", metadata=RAISES),
        new_code_cell("log(-1)"),
        new_code_cell("cat(strrep('0123456789', 1e4), sep = '\\n'); invisible(1)"),
        new_code_cell("cat('still', x, '\\n'); quit(); cat('never\\n')"),
    ],
}

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
OWN = {  # by the notebook's name
    "bash": {"display_name": "Bash (cellard)", "language": "bash", "name": "bash"},
    "r-own": {"display_name": "R (cellard)", "language": "R", "name": "r"},
}
TOLD = {"r": "ir"}  # what an agent calls the kernel that it runs in its place


def make(directory):
    for name, cells in NOTEBOOKS.items():
        nb = new_notebook(cells=cells, metadata={"kernelspec": OWN.get(name, KERNEL), "own": {"z": 1, "a": [True, None]}})
        nbformat.write(nb, directory / f"{name}.ipynb")


# Of several packages, and each of another nature.
IPYTHON = "ipython-7.34.0/examples/IPython Kernel/"
JUPYTEXT = "jupytext-1.19.6/tests/data/notebooks/inputs/ipynb_"
REAL = {
    "animations": IPYTHON + "Animations Using clear_output",
    "rich": IPYTHON + "Rich Output",  # HTML, LaTeX, SVG, audio, video, files beside it
    "updating": IPYTHON + "Updating Displays",
    "tables": JUPYTEXT + "py/text_outputs_and_images",  # of pandas, and a log on stderr, and an error
    "charts": "seaborn-0.13.2/doc/_tutorial/color_palettes",  # and HTML with style, and raw cells
    "metadata": "nbconvert-7.17.2/tests/exporters/files/pngmetadata",  # of a chart with twice the dots
    "fit": "lmfit-1.3.4/examples/discuss_model_eval_uncertainty",  # regression by SciPy
    "interactive": JUPYTEXT + "py/plotly_graphs",
    "widgets": "nbconvert-7.17.2/tests/files/Widget_List",
    "errors": "nbval-0.11.0/tests/exceptions",  # that some cells' tags expect
    "javascript": JUPYTEXT + "js/ijavascript",
    "typescript": JUPYTEXT + "ts/itypescript",
    "java": JUPYTEXT + "java/simple-helloworld",
    "bash": JUPYTEXT + "bash/sample_bash_notebook",
    "r": JUPYTEXT + "R/ir_notebook",
}
# Of packages of R that are installed: documents, whose chunks become cells.
VIGNETTES = {
    "r-tibble": ("tibble", "tibble"),  # tables, and an error
    "irkernel-tibble": ("tibble", "invariants"),  # many errors and warnings
    "irkernel-plots": ("ggplot2", "ggplot2-specs"),
}
OTHER = {"r", "r-tibble"}  # which nbclient runs on IRkernel, and cellard on its own kernel for R
R = {"display_name": "R", "language": "R", "name": "ir"}


SEED = {"fit": "import numpy\nnumpy.random.seed(1)"}  # of what else draws other numbers each time
OURS = {"javascript", "typescript", "java", "bash"}  # whose kernel nbclient runs too


def vignette(package, name):
    """A document with chunks of R as a notebook."""
    path = f"cat(system.file('doc', '{name}.Rmd', package = '{package}', mustWork = TRUE))"
    path = subprocess.run(["Rscript", "--vanilla", "-e", path], check=True, capture_output=True, text=True).stdout
    parts = re.split(r"^```{r\b[^}\n]*}\n(.*?)^```$", pathlib.Path(path).read_text(), flags=re.M | re.S)
    cells = [(new_code_cell if i % 2 else new_markdown_cell)(part.strip("\n")) for i, part in enumerate(parts)]
    return new_notebook(cells=cells, metadata={"kernelspec": R})


def real(fetched, directory):
    for name, path in REAL.items():
        source = fetched / f"{path}.ipynb"
        nb = nbformat.read(source, as_version=4)
        kernel = nb.metadata.get("kernelspec", KERNEL)
        nb = new_notebook(cells=nb.cells, metadata={"kernelspec": kernel if kernel["name"] in OURS | {"ir"} else KERNEL})
        if name in SEED:
            nb.cells.insert(0, new_code_cell(SEED[name]))
        for i, cell in enumerate(nb.cells):
            cell.id = f"c{i}"
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(nb, directory / f"{name}.ipynb")
        shutil.copytree(source.parent, directory / name, ignore=shutil.ignore_patterns("*.ipynb"))
    for name, document in VIGNETTES.items():
        nb = vignette(*document)
        for i, cell in enumerate(nb.cells):
            cell.id = f"c{i}"
        nbformat.write(nb, directory / f"{name}.ipynb")
        (directory / name).mkdir()


# What no two runs have alike: addresses, the time, the kernel's own names of cells, random
# ids, an SVG's date and Matplotlib's names of its parts.
VARIES = re.compile(r"\b0x[0-9a-f]{6,}|ipykernel_\d+/\d+\.py|\b[0-9a-f]{32}\b|<dc:date>[^<]*|\b1\d{9}\.\d+|\b[a-z][0-9a-f]{10}\b|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def same(value):
    """A value without what varies."""
    if isinstance(value, str):
        return VARIES.sub("…", value)
    if isinstance(value, dict):
        return {k: same(v) for k, v in value.items()}
    if isinstance(value, list):
        return [same(v) for v in value]
    return value


ANSI = re.compile(r"\x1b\[[0-9;]*m")


def exactly(cell):
    """A cell's outputs without what may differ: colours, dashes, how a stream is cut."""
    said = []
    for o in cell.get("outputs", []):
        o = dict(o)
        if "text" in o:
            o["text"] = o["text"].replace("\r\n", "\n")  # nbclient's kernel runs !commands in a terminal
        if o["output_type"] == "stream":
            if said and said[-1].get("name") == o["name"]:
                said[-1]["text"] += o["text"]
                continue
        if o["output_type"] == "error":
            lines = [ANSI.sub("", line) for line in "\n".join(o["traceback"]).split("\n")]
            o["traceback"] = [line.rstrip() for line in lines if line.strip("- ")]
            o["evalue"] = ANSI.sub("", o["evalue"])
        if "data" in o:
            o["data"] = {k: ANSI.sub("", v) if k.startswith("text/") else v for k, v in o["data"].items()}
            for k, v in o["data"].items():
                if k.startswith("image/"):  # base64 with breaks, or without
                    o["data"][k] = v.strip() if k == "image/svg+xml" else "".join(v.split())
        said.append(o)
    return same(said)


def essence(cell):
    """What R says of a cell on IRkernel and on cellard's kernel alike: what is printed, values as
    text, what is in tables, that there is a plot, errors' messages. Not warnings, which
    IRkernel words and puts in its own way, nor the other forms of values."""
    alike = []
    for o in exactly(cell):
        if o["output_type"] == "stream":
            if o["name"] == "stdout":
                alike.append(("stdout", o["text"]))
        elif o["output_type"] == "error":
            alike.append(("error", re.sub(r"^Error(?: in .*?)?:\s+(?:! )?", "", o["evalue"], count=1, flags=re.S).strip()))
        elif "image/png" in o["data"]:
            alike.append(("plot",))
        elif "<table" in o["data"].get("text/html", ""):
            shown = re.findall(r"<t[dh](?: scope=\w+)?>(?!&lt;)(.*?)</t[dh]>", o["data"]["text/html"])  # without types
            alike.append(("table", [v.strip() for v in shown[:60]]))  # of many rows IRkernel shows the last too
        else:
            alike.append(("value", o["data"]["text/plain"]))
    return alike


TIMES = ["iopub.status.busy", "iopub.execute_input", "shell.execute_reply", "iopub.status.idle"]


def timing(cell):
    """Take a cell's times out of its metadata; they are in the order in which they came."""
    times = cell.metadata.pop("execution", {})
    known = [datetime.datetime.fromisoformat(times[name]) for name in TIMES if name in times]
    assert known == sorted(known), times
    return times


def compare_session(name, path, want, outputs):
    """What an agent tells of a session: the cells that ran, and nothing else."""
    session = nbformat.read(path, as_version=4)
    nbformat.validate(session)
    kernel = session.metadata.kernelspec
    if outputs is not essence:
        wanted = want.metadata.kernelspec.name
        assert kernel.name == TOLD.get(wanted, wanted), kernel
        assert session.metadata.language_info == want.metadata.language_info, session.metadata
    ran = [cell for cell in want.cells if cell.cell_type == "code" and cell.execution_count]
    assert [cell.source for cell in session.cells] == [cell.source for cell in ran], name
    faults = 0
    for got, cell in zip(session.cells, ran):
        if outputs(got) != outputs(cell) or got.execution_count != cell.execution_count or len(timing(got)) != 4:
            faults += 1
            print(f"session of {name}: {cell.source}\n  agent    {got.execution_count} {str(outputs(got))[:600]}\n  nbclient {cell.execution_count} {str(outputs(cell))[:600]}")
    return faults


def compare(directory, out, sessions, work=None):
    faults = 0
    for path in sorted(directory.glob("*.ipynb")):
        name = path.stem
        outputs = essence if name in OTHER else exactly
        before = nbformat.read(directory / f"{name}.ipynb", as_version=4)
        want = nbformat.read(directory / f"{name}.ipynb", as_version=4)
        where = {}
        if work is not None:
            shutil.rmtree(work / name)
            shutil.copytree(directory / name, work / name)
            where = {"allow_errors": True, "resources": {"metadata": {"path": str(work / name)}}}
        NotebookClient(want, timeout=600, **where).execute()
        got = nbformat.read(out / f"{name}.ipynb", as_version=4)
        nbformat.validate(got)
        want.metadata.pop("widgets", None)  # what no front end holds any more: cellard keeps outputs
        faults += compare_session(name, sessions / f"{name}.ipynb", want, outputs)
        assert (got.nbformat, got.nbformat_minor) == (4, 5), name
        if outputs is not essence:
            assert got.metadata == want.metadata, (name, got.metadata, want.metadata)
        assert len(got.cells) == len(want.cells), name
        for i, (g, w, b) in enumerate(zip(got.cells, want.cells, before.cells)):
            times, wanted = timing(g), timing(w)
            assert (g.id, g.source, g.metadata) == (b.id, b.source, b.metadata), (name, i)
            if times.keys() != wanted.keys():
                faults += 1
                print(f"{name}, cell {i}: {b.source}\n  times: {times}, {wanted}")
            if g.cell_type != "code":
                continue
            if outputs(g) != outputs(w) or g.execution_count != w.execution_count:
                faults += 1
                print(f"{name}, cell {i}: {b.source}\n  cellard  {g.execution_count} {str(outputs(g))[:600]}\n  nbclient {w.execution_count} {str(outputs(w))[:600]}")
    sys.exit(faults > 0)


if sys.argv[1] == "make":
    make(pathlib.Path(sys.argv[2]))
elif sys.argv[1] == "real":
    real(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
else:
    compare(*map(pathlib.Path, sys.argv[2:]))
