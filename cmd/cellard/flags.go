package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// flagSet is a command's flags.
type flagSet struct {
	*flag.FlagSet
	environment map[string]bool // those that the environment has set
	agent       map[string]bool // those of an agent of the command's own
}

// newFlags makes a command's flag set. The flags are read by parse.
func newFlags(name string) *flagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // parse says what is wrong, and help is no error
	return &flagSet{fs, map[string]bool{}, map[string]bool{}}
}

// given are the names of the flags that the command's line has set, sorted.
func (fs *flagSet) given() (names []string) {
	fs.Visit(func(f *flag.Flag) {
		if !fs.environment[f.Name] {
			names = append(names, f.Name)
		}
	})
	return names
}

// dashed is a flag as it is written.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// oneDash is what package flag calls a flag in its errors.
var oneDash = regexp.MustCompile(`(flag |not defined: |argument: )-([a-z]{2})`)

// read is Parse, whose errors name flags as the help does. A switch's value after a space
// would be an argument, and the switch be on.
func (fs *flagSet) read(args []string) error {
	err := fs.Parse(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return errors.New(oneDash.ReplaceAllString(err.Error(), "$1--$2"))
	}
	if n := len(args) - fs.NArg(); err == nil && n > 0 && n < len(args) && (args[n] == "true" || args[n] == "false") {
		f := fs.Lookup(strings.TrimLeft(args[n-1], "-"))
		if f == nil || !strings.HasPrefix(args[n-1], "-") {
			return nil
		}
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			return fmt.Errorf("write %s=%s: with a space between, %s is not its value", dashed(f.Name), args[n], args[n])
		}
	}
	return err
}

// parse is parseMixed for a command that takes nothing but flags.
func parse(fs *flagSet, args []string, about string) (code int, ok bool) {
	return parseMixed(fs, args, about, func(arg string) error {
		return fmt.Errorf("unexpected argument %q\nrun cellard %s --help for its flags", arg, fs.Name())
	})
}

// parseMixed reads args, then the environment for each flag that args does not set. Flags
// may also follow the arguments: each of these goes to take, in order. It returns false,
// and the exit code, where the command is not to go on.
func parseMixed(fs *flagSet, args []string, about string, take func(string) error) (code int, ok bool) {
	err := fs.readMixed(args, take)
	if errors.Is(err, flag.ErrHelp) {
		help(os.Stdout, fs, about)
		return exitOK, false
	}
	var argument argumentError
	if errors.As(err, &argument) {
		fmt.Fprintf(os.Stderr, "cellard %s: %v\n", fs.Name(), err)
		return exitUsage, false
	}
	if err == nil {
		err = fromEnvironment(fs)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cellard %s: %v\nrun cellard %s --help for its flags\n", fs.Name(), err, fs.Name())
		return exitUsage, false
	}
	return exitOK, true
}

// argumentError is what take has against an argument.
type argumentError struct{ error }

// readMixed reads flags and arguments in any order; after -- there are no more flags.
func (fs *flagSet) readMixed(args []string, take func(string) error) error {
	for {
		if err := fs.read(args); err != nil {
			return err
		}
		n := len(args) - fs.NArg() // how many flags, and their values
		ended := n > 0 && args[n-1] == "--"
		args = fs.Args()
		if len(args) == 0 {
			return nil
		}
		n = 1
		if ended {
			n = len(args)
		}
		for _, a := range args[:n] {
			if err := take(a); err != nil {
				return argumentError{err}
			}
		}
		args = args[n:]
	}
}

func fromEnvironment(fs *flagSet) error {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	fs.VisitAll(func(f *flag.Flag) {
		v := os.Getenv(variable(f.Name))
		if v == "" || given[f.Name] || err != nil {
			return
		}
		fs.environment[f.Name] = true
		if e := fs.Set(f.Name, v); e != nil {
			err = fmt.Errorf("%s=%q: %w", variable(f.Name), v, e)
		}
	})
	return err
}

// variable is the environment variable of a flag.
func variable(name string) string {
	return "CELLARD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func help(w io.Writer, fs *flagSet, about string) {
	fmt.Fprintf(w, "%s\n\nEvery flag has an environment variable: --start-timeout is %s.\nA TIME is as 90s or 1h30m, a SIZE as 64KiB or 2GiB.\n\nFlags:\n", strings.TrimSpace(about), variable("start-timeout"))
	fs.describe(w, false)
	if len(fs.agent) > 0 {
		fmt.Fprint(w, "\nFlags of the agent that it starts itself, not for --agent:\n")
		fs.describe(w, true)
	}
}

// describe tells of the flags of the command, or of those of an agent of its own.
func (fs *flagSet) describe(w io.Writer, agent bool) {
	fs.VisitAll(func(f *flag.Flag) {
		if fs.agent[f.Name] != agent {
			return
		}
		value, text := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  %s\n        %s", strings.TrimSpace(dashed(f.Name)+" "+value), strings.ReplaceAll(text, "\n", "\n        "))
		if f.DefValue != "" && f.DefValue != "false" {
			fmt.Fprintf(w, " (default %s)", f.DefValue)
		}
		fmt.Fprintln(w)
	})
}

// list is a flag that may be repeated, or hold several values with commas or
// spaces between them.
type list[T any] struct {
	values *[]T
	parse  func(string) (T, error)
}

func (l list[T]) String() string {
	if l.values == nil {
		return ""
	}
	var s []string
	for _, v := range *l.values {
		s = append(s, fmt.Sprint(v))
	}
	return strings.Join(s, ",")
}

func (l list[T]) Set(s string) error {
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		v, err := l.parse(word)
		if err != nil {
			return err
		}
		*l.values = append(*l.values, v)
	}
	return nil
}

// positive is a flag that must be above zero.
type positive[T int | int64 | time.Duration] struct {
	value *T
	parse func(string) (T, error)
	print func(T) string
}

func (p positive[T]) String() string {
	if p.value == nil {
		return ""
	}
	return p.print(*p.value)
}

func (p positive[T]) Set(s string) error {
	v, err := p.parse(s)
	if err != nil {
		return err
	}
	if v <= 0 {
		return fmt.Errorf("must be above zero")
	}
	*p.value = v
	return nil
}

func durationVar(fs *flagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	fs.Var(positive[time.Duration]{p, parseTime, shortDuration}, name, usage)
}

// parseTime reads a time with its unit.
func parseTime(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if _, e := strconv.ParseFloat(s, 64); err != nil && e == nil {
		return 0, fmt.Errorf("it has no unit; want %ss, or %sm", s, s)
	}
	if err != nil {
		return 0, errors.New("it is no time; want one as 90s or 1h30m")
	}
	return d, nil
}

// shortDuration writes 1m0s as 1m.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func countVar(fs *flagSet, p *int, name string, value int, usage string) {
	*p = value
	fs.Var(positive[int]{p, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("%q is no number", s)
		}
		return n, nil
	}, strconv.Itoa}, name, usage)
}

func sizeVar(fs *flagSet, p *int64, name string, value int64, usage string) {
	*p = value
	fs.Var(positive[int64]{p, parseSize, printSize}, name, usage)
}

var units = []string{"KiB", "MiB", "GiB", "TiB"}

// parseSize reads bytes: 65536, 64KiB, 1.5GiB; K, KB and k are taken for KiB.
func parseSize(s string) (int64, error) {
	number := strings.TrimRight(s, "kKmMgGtTiIbB ")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0 && n <= 1<<50) { // NaN is neither
		return 0, fmt.Errorf("%q is no size; want one as 64KiB or 2GiB", s)
	}
	unit := strings.ToLower(strings.TrimSpace(s[len(number):]))
	if unit == "" || unit == "b" {
		return int64(n), nil
	}
	for i, u := range units {
		u = strings.ToLower(u)
		if unit == u || unit == u[:1] || unit == u[:1]+"b" {
			n *= float64(int64(1) << (10 * (i + 1)))
			if n > 1<<60 {
				break
			}
			return int64(n), nil
		}
	}
	return 0, fmt.Errorf("%q is no size; want one as 64KiB or 2GiB", s)
}

func printSize(n int64) string {
	unit := ""
	for _, u := range units {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, u
	}
	return strconv.FormatInt(n, 10) + unit
}
