"""Runs jupyter_kernel_test and nbclient on an installed kernel: conformance.py NAME

Each language says here what it has; what it leaves out of that is skipped by the suite,
and must be in "without" by name: nothing is skipped by chance.
"""

import sys
import unittest

import jupyter_kernel_test
import nbformat
from nbclient import NotebookClient

LANGUAGES = {
    "bash": dict(
        file_extension=".sh",
        code_hello_world="echo hello, world",
        code_stderr="echo oops >&2",
        code_generate_error="false",
        completion_samples=[{"text": "ech", "matches": {"echo"}}],
        complete_code_samples=["echo a", "for i in 1; do echo $i; done"],
        incomplete_code_samples=["for i in 1; do", "echo 'a"],
        invalid_code_samples=["fi", "echo ;;"],
        code_display_data=[
            {"code": "printf 'a,b\\n' > t.csv; display t.csv; rm t.csv", "mime": "text/csv"},
            {"code": "echo '<b>x</b>' | display - text/html", "mime": "text/html"},
        ],
        code_inspect_sample="echo",
        notebook=[("x=41", ""), ("echo $((x + 1)); echo err >&2", "42\n")],
        # Bash has no value of a last expression, no pager and no clear_output.
        without={"test_execute_result", "test_history", "test_pager", "test_clear_output"},
    ),
    "javascript": dict(
        file_extension=".js",
        code_hello_world="console.log('hello, world')",
        code_stderr="console.error('oops')",
        code_generate_error="throw new Error('no')",
        code_execute_result=[
            {"code": "6 * 7", "result": "42"},
            {"code": "[{a: 1}]", "mime": "application/vnd.runtime.table+json"},
        ],
        code_clear_output="display.clear()",
        completion_samples=[{"text": "Math.ma", "matches": {"max"}}],
        complete_code_samples=["1 + 1", "function f() { return 1 }"],
        incomplete_code_samples=["function f() {", "`a"],
        invalid_code_samples=["let = = 1"],
        code_display_data=[
            {"code": "display({'text/html': '<b>x</b>'})", "mime": "text/html"},
            {"code": "display.svg('<svg/>')", "mime": "image/svg+xml"},
        ],
        code_inspect_sample="Math.max",
        notebook=[("let x = 41", ""), ("console.log(await Promise.resolve(x + 1)); console.error('err')", "42\n")],
        without={"test_history", "test_pager"},  # Node has neither
    ),
    "typescript": dict(
        file_extension=".ts",
        code_hello_world="console.log('hello, world' as string)",
        code_stderr="console.error('oops')",
        code_generate_error="throw new Error('no')",
        code_execute_result=[{"code": "enum E { A, B }\nE.B as number + 41", "result": "42"}],
        code_clear_output="display.clear()",
        completion_samples=[{"text": "Math.ma", "matches": {"max"}}],
        complete_code_samples=["const x: number = 1", "interface P { n: number }"],
        incomplete_code_samples=["function f(a: number) {", "interface P {"],
        invalid_code_samples=["let = = 1"],
        code_display_data=[{"code": "display({'text/html': '<b>x</b>'})", "mime": "text/html"}],
        code_inspect_sample="Math.max",
        notebook=[("let x: number = 41", ""), ("console.log(x + 1)", "42\n")],
        without={"test_history", "test_pager"},
    ),
    "java": dict(
        file_extension=".java",
        code_hello_world='System.out.println("hello, world");',
        code_stderr='System.err.println("oops");',
        code_generate_error='throw new IllegalStateException("no");',
        code_execute_result=[{"code": "6 * 7", "result": "42"}],
        code_clear_output="clearOutput();",
        completion_samples=[{"text": "Math.ma", "matches": {"max("}}],
        complete_code_samples=["int x = 1;", "int f() { return 1; }"],
        incomplete_code_samples=["int f() {", "class A {"],
        invalid_code_samples=["int int int;"],
        code_display_data=[{"code": 'display(Map.of("text/html", "<b>x</b>"));', "mime": "text/html"}],
        code_inspect_sample="Math.max",
        notebook=[("int x = 41;", ""), ('System.out.println(x + 1); System.err.println("err");', "42\n")],
        without={"test_history", "test_pager"},  # JShell has neither
    ),
    "go": dict(
        file_extension=".go",
        code_hello_world='fmt.Println("hello, world")',
        code_stderr='fmt.Fprintln(os.Stderr, "oops")',
        code_generate_error='panic("no")',
        code_execute_result=[{"code": "6 * 7", "result": "42"}],
        completion_samples=[{"text": "strings.ToUpp", "matches": {"strings.ToUpper", "strings.ToUpperSpecial"}}],
        complete_code_samples=["x := 1", "func f() int { return 1 }"],
        incomplete_code_samples=["func f() int {", "var s = `a"],
        invalid_code_samples=["func func func"],
        code_display_data=[{"code": 'display(map[string]any{"text/html": "<b>x</b>"})', "mime": "text/html"}],
        code_inspect_sample="strings.ToUpper",
        notebook=[("x := 41", ""), ("fmt.Println(x + 1)", "42\n")],
        without={"test_history", "test_pager", "test_clear_output"},
    ),
    "r": dict(
        language_name="R",
        file_extension=".r",
        code_hello_world="cat('hello, world\\n')",
        code_stderr="message('oops')",
        code_generate_error="stop('no')",
        code_execute_result=[
            {"code": "6 * 7", "result": "[1] 42"},
            {"code": "data.frame(a = 1)", "mime": "application/vnd.runtime.table+json"},
        ],
        code_clear_output="getOption('jupyter.clear_output_func')()",
        completion_samples=[{"text": "read.ta", "matches": {"read.table"}}],
        complete_code_samples=["1 + 1", "f <- function() 1"],
        incomplete_code_samples=["f <- function() {", "'a"],
        invalid_code_samples=["1 1", ")"],
        code_display_data=[
            {"code": "display(list('text/html' = '<b>x</b>'))", "mime": "text/html"},
            {"code": "plot(1:3)", "mime": "image/png"},
        ],
        code_inspect_sample="read.table",
        notebook=[("x <- 41", ""), ("cat(x + 1, '\\n', sep = ''); system('echo child'); message('err')", "42\nchild\n")],
        without={"test_history", "test_pager"},  # help is printed
    ),
}


def suite(name):
    samples = dict(LANGUAGES[name])
    notebook, without = samples.pop("notebook"), samples.pop("without")

    class Conformance(jupyter_kernel_test.KernelTests):
        kernel_name = name
        language_name = name

        def test_recv_iopub_welcome_msg(self):
            # The suite's own sets XPUB options on the manager of ipykernel; what counts is
            # the message.
            client = self.km.client()
            client.start_channels()
            try:
                message = client.get_iopub_msg(timeout=15)
                while message["header"]["msg_type"] != "iopub_welcome":
                    message = client.get_iopub_msg(timeout=15)
                self.assertEqual(message["content"]["subscription"], "")
            finally:
                client.stop_channels()

        def test_notebook(self):
            node = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": name, "display_name": name}})
            node.cells = [nbformat.v4.new_code_cell(code) for code, _ in notebook]
            NotebookClient(node, kernel_name=name, timeout=60).execute()
            for cell, (_, want) in zip(node.cells, notebook):
                got = "".join(o.text for o in cell.outputs if o.get("name") == "stdout")
                self.assertEqual(got, want)

    for key, value in samples.items():
        setattr(Conformance, key, value)
    return unittest.defaultTestLoader.loadTestsFromTestCase(Conformance), without


if __name__ == "__main__":
    tests, without = suite(sys.argv[1])
    result = unittest.TextTestRunner(verbosity=2).run(tests)
    skipped = {test.id().split(" ")[0].rsplit(".", 1)[1] for test, _ in result.skipped}
    if skipped != without:
        print("skipped", sorted(skipped), "and not", sorted(without))
    sys.exit(not result.wasSuccessful() or skipped != without)
