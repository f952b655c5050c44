package r

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter"
)

// variables asks for the list.
func (k *kernel) variables() (list api.VariableList) {
	k.t.Helper()
	_, reply := k.ask("variables_request", "variables_reply", struct{}{})
	b, _ := json.Marshal(reply)
	if err := json.Unmarshal(b, &list); err != nil || reply["status"] != "ok" {
		k.t.Fatalf("%.500s: %v", b, err)
	}
	return list
}

// lines are a list's variables, one a line.
func lines(list api.VariableList) string {
	var b strings.Builder
	for _, v := range list.Data {
		size, _ := json.Marshal(v.Size)
		shape, _ := json.Marshal(v.Shape)
		fmt.Fprintf(&b, "%s %s %s %s %s\n", v.Name, v.Type, size, shape, v.Preview)
	}
	return b.String()
}

// tells checks the list of variables, a line each.
func (k *kernel) tells(want string) {
	k.t.Helper()
	list := k.variables()
	if got := lines(list); got != want || list.Total != len(list.Data) {
		k.t.Errorf("of %d, got\n%s\nwant\n%s", list.Total, got, want)
	}
}

// What cells have set is told in R's words.
func TestVariables(t *testing.T) {
	k := start(t)
	if !slices.Contains(k.info.SupportedFeatures, jupyter.FeatureVariables) {
		t.Errorf("%+v", k.info)
	}
	k.tells("")
	if _, reply := k.cell(`n <- 42; i <- 3L; yes <- c(TRUE, NA); text <- "a\n\"b\""; words <- c("one", NA, "drei\u00e9"); none <- NULL; z <- 1i; bytes <- as.raw(1:3)
named <- c(a = 1.5, b = 2); empty <- integer(); many <- runif(1e6) * 0; seq <- 1:1e9; long <- strrep("x", 1e6)
l <- list(1, "two", x = list(1, 2), f = mean, NULL, d = iris); m <- matrix(1:6, 2); arr <- array(0, c(2, 3, 4))
df <- data.frame(month = c("Jan", "Feb"), revenue = c(1, NA)); f <- function(x, y = stop(), ...) x
fac <- factor(c("lo", "hi")); day <- as.Date(c("2024-02-29", "2000-03-01", "1899-12-31", "0001-01-01", NA)); at <- as.POSIXct(c(0, 999999999.5), origin = '1970-01-01', tz = "UTC"); took <- as.difftime(5, units = "mins")
e <- new.env(); e$x <- 1; form <- y ~ x + z; sym <- quote(abc); .hidden <- 1
invisible(runif(1))`); reply["status"] != "ok" {
		t.Fatal(reply)
	}
	k.tells(`.hidden numeric 1 null 1
arr array null [2,3,4] double
at POSIXct 2 null 1970-01-01T00:00:00Z 2001-09-09T01:46:39Z
bytes raw 3 null 01 02 03
day Date 5 null 2024-02-29 2000-03-01 1899-12-31 0001-01-01 NA
df data.frame null [2,2] month, revenue
e environment 1 null 
empty integer 0 null integer(0)
f function null null function(x, y, ...)
fac factor 2 null lo hi
form formula null null y ~ x + z
i integer 1 null 3
l list 6 null 1, "two", x = list(2), f = function, NULL, d = data.frame
long character 1 null "` + strings.Repeat("x", 118) + `…
m matrix null [2,3] integer
many numeric 1000000 null 0 0 0 0 0 0 0 0 0 0 …
n numeric 1 null 42
named numeric 2 null a=1.5 b=2
none NULL 0 null NULL
seq integer 1000000000 null 1 2 3 4 5 6 7 8 9 10 …
sym name null null abc
text character 1 null "a\n\"b\""
took difftime 1 null 5 mins
words character 3 null "one" NA "dreié"
yes logical 2 null TRUE NA
z complex 1 null 0+1i
`)
	k.cell("rm(list = ls(all.names = TRUE)); n <- 'new'")
	k.tells("n character 1 null \"new\"\n")
	if _, reply := k.cell("stopifnot(is.null(globalenv()$.Last.value) || TRUE); n"); text(reply, "execution_count") != "3" {
		t.Errorf("the questions count as cells: %v", reply)
	}
	k.cell("for (i in 1:1500) assign(sprintf('v%04d', i), i); rm(i)")
	if list := k.variables(); len(list.Data) != api.MaxVariables || list.Total != 1501 || list.Data[1].Name != "v0001" {
		t.Errorf("%d of %d", len(list.Data), list.Total)
	}
}

// No code of the cells' runs, nothing changes, and nothing keeps the list from its end.
func TestVariablesThatAreHostile(t *testing.T) {
	k := start(t)
	if _, reply := k.cell(`ran <- character()
a.list <- structure(list(1), class = "bad"); a.vector <- structure(1:3, class = "bad"); a.frame <- structure(data.frame(x = 1), class = c("bad", "data.frame"))
a.factor <- structure(1:2, levels = c("x", "y"), class = c("bad", "factor")); a.date <- structure(1, class = c("bad", "Date"))
a.huge.date <- structure(c(1e300, Inf), class = "Date"); a.text <- structure("x", class = "bad"); a.function <- structure(function(a, b) 1, class = "bad")
an.env <- structure(new.env(), class = "bad")
makeActiveBinding("b.active", function() { ran <<- c(ran, "active"); while (TRUE) {} }, globalenv())
delayedAssign("b.late", { ran <<- c(ran, "promise"); quit() }); delayedAssign("b.came", 5); b.came
delayedAssign("b.big", double(1e7)); invisible(b.big[[1]])
setClass("Thing", representation(x = "numeric")); setMethod("show", "Thing", function(object) { ran <<- c(ran, "show"); while (TRUE) {} })
setMethod("length", "Thing", function(x) { ran <<- c(ran, "S4 length"); while (TRUE) {} }); c.thing <- new("Thing", x = 1)
Account <- setRefClass("Account", fields = list(total = "numeric"), methods = list(show = function() { ran <<- c(ran, "R5"); while (TRUE) {} })); c.account <- Account$new(total = 1)
d.missing <- quote(expr = ); d.deep <- quote(x); for (i in 1:50000) d.deep <- call("f", d.deep); d.nested <- list(); for (i in 1:50000) d.nested <- list(d.nested)
d.call <- bquote(f(.(double(1e7)))); d.invalid <- "a\xffb"; d.bytes <- "\xff"; Encoding(d.bytes) <- "bytes"; d.latin <- "\xe9"; Encoding(d.latin) <- "latin1"
d.names <- structure(1:2, names = c(NA, strrep("n", 1e6))); d.rows <- structure(list(), class = "data.frame", row.names = "x", names = NULL)
d.units <- structure(1, class = "difftime", units = quote(x)); d.nolevels <- structure(1:2, class = "factor")
set.seed(1); seed <- .Random.seed
evil <- function(name) { force(name); function(...) { ran <<- c(ran, name); while (TRUE) {} } }
for (generic in c("length", "dim", "format", "as.character")) registerS3method(generic, "bad", evil(generic), baseenv())
made <- character()
for (generic in c("length", "dim", "names", "format", "print", "as.character", "levels", "str", "summary", "is.na", "[", "[[", "$", "as.list", "dimnames", "row.names", "xtfrm", "toString", "nchar", "substr", "as.vector", "rep"))
  for (class in c("bad", "double", "numeric", "integer", "character", "function", "list", "Date", "factor")) {
    method <- paste0(generic, ".", class)
    if (!exists(method, baseenv())) { assign(method, evil(method)); made <- c(made, method) }
  }
`); reply["status"] != "ok" {
		t.Fatal(reply)
	}
	got := ""
	for line := range strings.Lines(lines(k.variables())) {
		if name, _, _ := strings.Cut(line, " "); len(name) > 2 && strings.ContainsRune("abcd", rune(name[0])) && name[1] == '.' || strings.HasPrefix(name, "an.") {
			got += line
		}
	}
	want := `a.date bad 1 null 1970-01-02
a.factor bad 2 null x y
a.frame bad null [1,1] x
a.function bad null null function(a, b)
a.huge.date Date 2 null NA NA
a.list bad 1 null 
a.text bad 1 null "x"
a.vector bad 3 null 1 2 3
an.env bad null null 
b.active active binding null null 
b.big numeric 10000000 null 0 0 0 0 0 0 0 0 0 0 …
b.came numeric 1 null 5
b.late promise null null 
c.account Account null null 
c.thing Thing null null 
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	all, _ := k.cell("rm(list = made); c(length(ran), identical(seed, .Random.seed), nrow(showConnections()), ran)")
	if got := text(one(all, "execute_result"), "data", "text/plain"); got != `"[1] \"0\"    \"TRUE\" \"0\"   "` {
		t.Errorf("what ran: %v", got)
	}
}
