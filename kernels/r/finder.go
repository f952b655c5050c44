package r

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cellard/cellard/internal/environ"
)

// answerMark stands before the line that answers: a site's profile may print, too.
const answerMark = "cellard-r:"

// probe prints the versions of R, of IRkernel, and which packages the kernel lacks. It
// loads none of them.
const probe = `cat("\n` + answerMark + `", paste(R.version$major, R.version$minor, sep = "."),` +
	` tryCatch(as.character(utils::packageVersion("IRkernel")), error = function(e) "none"),` +
	` Filter(function(p) !nzchar(system.file(package = p)), c("pbdZMQ", "jsonlite", "digest")), "\n")`

// Interpreter is an R that the kernel can run in.
type Interpreter struct {
	// Program is the R to start.
	Program string
	// Version and IRkernel are versions, of R and of the package IRkernel.
	Version  string
	IRkernel string
}

// Finder finds R, and remembers it.
type Finder struct {
	search environ.Search
	memo   *environ.Memo[Interpreter]
}

// NewFinder returns a Finder.
func NewFinder(s environ.Search) *Finder {
	return &Finder{search: s.WithDefaults(), memo: environ.NewMemo[Interpreter]()}
}

// NotFoundError says why no R will do.
type NotFoundError struct {
	// Program is the R that was asked; "" where there is none.
	Program string
	// Reason is what it lacks.
	Reason string
	// NoPackage tells that R runs and lacks only packages.
	NoPackage bool
}

// Error says what is wrong.
func (e *NotFoundError) Error() string {
	if e.Program == "" {
		return e.Reason
	}
	return e.Program + ": " + e.Reason
}

// Hint says what to do about it.
func (e *NotFoundError) Hint() string {
	if e.NoPackage {
		return `install R's package IRkernel: apt-get install r-cran-irkernel, or install.packages("IRkernel") in R`
	}
	return "install R and its package IRkernel: on Debian and Ubuntu, apt-get install r-base-core r-cran-irkernel"
}

// Find returns the R of R_HOME, or the first of the PATH, when it has what the kernel
// needs. A success is remembered as long as the program stays the same file; after a
// failure the next call looks again, so that an installation mends it. The error is a
// *NotFoundError, or ctx's.
func (f *Finder) Find(ctx context.Context) (*Interpreter, error) {
	return f.memo.Get(ctx, func() (*Interpreter, string, error) {
		program := f.program()
		if program == "" {
			return nil, "", &NotFoundError{Reason: "there is no R on this machine"}
		}
		found, err := f.ask(ctx, program)
		return found, program, err
	})
}

// Forget makes the next Find look again: for a caller whose kernel did not start.
func (f *Finder) Forget() { f.memo.Forget() }

func (f *Finder) program() string {
	names := []string{"R"}
	if home := environ.Get(f.search.Env, "R_HOME"); home != "" {
		names = append([]string{filepath.Join(home, "bin", "R")}, names...)
	}
	for _, name := range names {
		if program, err := environ.LookPath(f.search.Env, name); err == nil {
			return program
		}
	}
	return ""
}

// ask runs an R once.
func (f *Finder) ask(ctx context.Context, program string) (*Interpreter, error) {
	out, err := f.search.Ask(ctx, program, "--no-save", "--no-restore", "--no-init-file", "--slave", "-e", probe)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &NotFoundError{Program: program, Reason: err.Error()}
	}
	_, answer, ok := strings.Cut("\n"+out, "\n"+answerMark)
	answer, _, _ = strings.Cut(answer, "\n")
	words := strings.Fields(answer)
	if !ok || len(words) < 2 {
		return nil, &NotFoundError{Program: program, Reason: "it does not answer as R does"}
	}
	lacks := words[2:]
	if words[1] == "none" {
		lacks = append(lacks, "IRkernel")
	}
	if len(lacks) > 0 {
		return nil, &NotFoundError{Program: program, NoPackage: true,
			Reason: fmt.Sprintf("R %s has no package %s", words[0], strings.Join(lacks, ", "))}
	}
	return &Interpreter{Program: program, Version: words[0], IRkernel: words[1]}, nil
}
