package r

import (
	"strings"
	"testing"
)

// tellMethods defines, for every generic function of base, methods that base doesn't have for
// the types of plain values and of some of R's classes. Each tells of a call while interrupts
// are not let in.
const tellMethods = `
called <- new.env(); called$busy <- TRUE; called$names <- character()
local({
	classes <- c("character", "numeric", "integer", "double", "logical", "list", "function", "environment", "NULL", "raw",
		"name", "call", "language", "expression", "matrix", "array", "json", "POSIXct", "POSIXt", "connection", "file",
		"rawConnection", "textConnection", "proc_time", "package_version", "data.frame", "simple.list")
	define <- function(generic) for (class in classes) {
		name <- paste0(generic, ".", class)
		if (!exists(name, baseenv())) assign(name, eval(bquote(function(...) {
			if (!called$busy) {
				called$busy <- TRUE
				off <- .Internal(interruptsSuspended(TRUE))
				.Internal(interruptsSuspended(off))
				if (off) called$names <- c(called$names, .(name))
				called$busy <- FALSE
			}
			NextMethod()
		})), globalenv())
	}
	for (name in ls(baseenv(), all.names = TRUE)) {
		f <- get(name, baseenv())
		if (is.function(f) && !is.primitive(f) && any(grepl("UseMethod", deparse(body(f)), fixed = TRUE))) define(name)
	}
	for (name in c("Ops", "$", "[", "[[", "+", "<", "as.character", "length", "names")) define(name)
	called$busy <- FALSE
})`

// Between cells, and around them, the kernel calls none of the methods that a cell may have
// defined for the types of plain values: such a one may never end, and nobody could stop it.
func TestMethodsOfPlainValues(t *testing.T) {
	k := start(t)
	if _, reply := k.cell(tellMethods); reply["status"] != "ok" {
		t.Fatal(reply)
	}
	for range 3 { // R compiles what is called for the second time
		for _, code := range []string{"x <- 1:10; x", "letters", "list(a = 1)", "stop('a')", "warning('w'); 5", "message('m')", "1 +",
			"plot(1:3)", "data.frame(a = 1:3, b = letters[1:3])", "display(list('text/plain' = 'x'))", "readline('x? ')", "quit()"} {
			k.cell(code)
		}
		k.variables()
		k.ask("kernel_info_request", "kernel_info_reply", struct{}{})
	}
	all, _ := k.cell("called$busy <- TRUE; cat('\\ncalled:', unique(called$names)); sum(1:10)")
	if got := text(one(all, "execute_result"), "data", "text/plain"); got != `"[1] 55"` {
		t.Errorf("the last cell: %v", all)
	}
	if got := strings.TrimSpace(k.stdout.String()); !strings.HasSuffix(got, "called:") {
		t.Errorf("called: %s", got[max(0, len(got)-1000):])
	}
}
