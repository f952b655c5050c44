package bash

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The shell's side. What is written as @NAME is replaced by the path of a pipe or a
// file, always the same as seen by all shells. Builtins are named as \builtin, which no
// alias and no function of a user's name for them changes. The texts are single lines
// where a line number is to be that of a cell.

// loopText runs cells. Its condition comes first after each cell, whatever that did
// (continue), and neither set -e nor a trap of ERR looks at conditions. It tells the
// status of the last cell, its flags and its traps, waits, and sources what sets
// up the next cell; where that fails the cell isn't run. Between cells there is nothing to
// stop: the signal for that does nothing (in POSIX mode it ends a read).
const loopText = `while \builtin :; do while {
  __cellard_s=${__cellard_x-$?} __cellard_f=${__cellard_xf-$-}
  \builtin trap '\builtin :' USR2
  \builtin set +euxv
  \builtin unset -v __cellard_x __cellard_xf
  \builtin eval "$__cellard_undo"
  __cellard_undo= __cellard_args=("$@")
  \builtin printf '\1E %s %s %s %s %s\n' "$__cellard_n" "$__cellard_s" "$BASHPID" "$__cellard_f" "$__cellard_bad"
  \builtin trap -p
  \builtin printf '\1.\n'
  \builtin trap - DEBUG ERR RETURN
} >@status 2>/dev/null
  while until IFS= \builtin read -r __cellard_do <@command
      do [[ $? -gt 128 ]] || { \builtin trap - EXIT; \builtin exit; }; done
    [[ $__cellard_do == k ]]
  do ( \builtin set -m; ( \builtin eval "$__cellard_copy" ) & ); done
  \builtin source @setup
do __cellard_return; \builtin source @code; done; done`

// stopTrap is the trap of the signal that stops a cell, and exitTrap that of EXIT. set -x
// shows neither: the first keeps the flags for the second. A shell that exits already goes on
// with that, whatever signals come: an exit in a trap of EXIT would end that.
const (
	stopTrap = `{ __cellard_i=${__cellard_i:-$-}; \builtin set +xv; } 2>/dev/null; [[ $__cellard_q ]] || \builtin exit 130`
	exitTrap = `{ __cellard_s=$? __cellard_q=1 __cellard_f=${__cellard_i:-$-} __cellard_i=; \builtin set +euxv; } 2>/dev/null; \builtin eval "$__cellard_exit"`
)

// exitText is the rest of the EXIT trap: a copy of the shell goes on. That it comes is told
// before it is there, so that an interrupt can't take it for the cell's.
const exitText = `{
  \builtin printf '\1X %s\n' "$BASHPID"
  \builtin eval "$__cellard_undo"
  __cellard_undo=
  \builtin trap -p
  \builtin printf '\1.\n'
  \builtin trap - DEBUG ERR RETURN
} >@status 2>/dev/null
( \builtin set -m; ( \builtin eval "$__cellard_begin" ) & )
\builtin eval "$__cellard_atexit"`

// copyText is the copy that waits until it is to take over.
const copyText = `\builtin set +m
\builtin printf '\1K %s\n' "$BASHPID" >@status
IFS= \builtin read -r __cellard_do <@copy || \builtin exit
\builtin eval "$__cellard_begin"`

// beginText makes the shell that it is run in the one that runs cells. Of functions that
// the old one was in when it ended only their arguments are left, and are replaced. PS4
// tells how deep the nesting is (filter.go). What follows the first line is read without
// aliases, which a cell can have of while and case; the first cell has them back.
const beginText = `\builtin shopt -q expand_aliases && __cellard_a=1; \builtin shopt -u expand_aliases; \builtin set +m
case $__cellard_f in *m*) \builtin set -m;; esac
__cellard_pid=$BASHPID __cellard_atexit= __cellard_q= __cellard_i= __cellard_x=$__cellard_s __cellard_xf=$__cellard_f
\builtin trap '` + exitTrap + `' EXIT
\builtin trap '\builtin :' USR2
[[ ${FUNCNAME-source} != source ]] && \builtin set -- "${__cellard_args[@]}"
{ \builtin set -x; \builtin :; \builtin set +x; } 2>@status
\builtin printf '\1T %s\n' "$BASHPID" >@status
\builtin eval "$__cellard_loop"`

// functionsText has the functions that cells see. A cell's own EXIT trap is kept beside
// ours: it is run when the cell exits the shell. A function that takes a DEBUG, ERR or RETURN
// trap away gets it back when it returns, so these become one that does nothing (noTrap).
// Nothing may follow the builtin: it would be traced. display leaves its stdin where the
// kernel reads it. read tells the kernel of its prompt,
// which bash itself shows only on a terminal.
const functionsText = `__cellard_return() { \builtin return "$__cellard_s"; }
trap() {
  [[ ${1-} != -- ]] || shift
  if [[ $BASHPID != "$__cellard_pid" || $# -lt 2 || ( $1 == -* && $1 != - ) ]]; then
    \builtin trap "$@"
  else
    __cellard_r=()
    local __cellard_a
    for __cellard_a in "${@:2}"; do
      case $__cellard_a in
      [Ee][Xx][Ii][Tt]|0) __cellard_atexit=$1; [[ $1 != - ]] || __cellard_atexit=;;
      [Dd][Ee][Bb][Uu][Gg]|[Ee][Rr][Rr]|[Rr][Ee][Tt][Uu][Rr][Nn])
        if [[ $1 == - ]]; then \builtin trap -- '\builtin :' "$__cellard_a"; else __cellard_r+=("$__cellard_a"); fi;;
      *) __cellard_r+=("$__cellard_a");;
      esac
    done
    [[ ${#__cellard_r[@]} -eq 0 ]] || \builtin trap -- "$1" "${__cellard_r[@]}"
  fi
}
read() {
  if [[ $__cellard_in ]]; then
    local __cellard_p= __cellard_w= OPTIND=1 OPTARG __cellard_o
    while \builtin getopts ':ersa:d:i:n:N:p:t:u:' __cellard_o; do
      case $__cellard_o in p) __cellard_p=$OPTARG;; s) __cellard_w=1;; u) __cellard_p= __cellard_w=; \builtin break;; esac
    done
    [[ ! $__cellard_p$__cellard_w ]] || \builtin printf '\1prompt\0%s\0%s\0%s\0%s\0\2' "$__cellard_n" "$BASHPID" "${__cellard_p:0:2000}" "$__cellard_w" >@requests
  fi
  \builtin read "$@"
}
display() {
  local __cellard_r
  if [[ $# -lt 1 || $# -gt 2 || $1 == -h || $1 == --help || ( $1 == - && $# != 2 ) ]]; then
    \builtin echo 'usage: display PATH [TYPE]    or    COMMAND | display - TYPE' >&2
    \builtin return 2
  fi
  if [[ ${#1} -gt 900 || ${#2} -gt 100 ]]; then
    \builtin echo 'display: the path is too long: go to its directory first' >&2
    \builtin return 1
  fi
  \builtin printf '\1display\0%s\0%s\0%s\0%s\0\2' "$__cellard_n" "$BASHPID" "$1" "${2-}" >@requests
  IFS= \builtin read -r -u 61 __cellard_r 61<@answers || \builtin return 1
  [[ $__cellard_r == ok ]] && \builtin return 0
  \builtin printf 'display: %s\n' "$__cellard_r" >&2
  \builtin return 1
}`

// paths are where the shells find the kernel's pipes and files.
type paths struct {
	status, command, copy, setup, code, requests, answers string
}

func (p paths) in(text string) string {
	return strings.NewReplacer("@status", p.status, "@command", p.command, "@copy", p.copy, "@setup", p.setup,
		"@code", p.code, "@requests", p.requests, "@answers", p.answers).Replace(text)
}

// script is what the first shell runs. The texts are read-only variables: a cell can't
// break its own loop by chance. It tells its version and the names of its variables where a
// cell's setup will be.
func (p paths) script() string {
	var b strings.Builder
	b.WriteString("\\builtin shopt -s expand_aliases; PS4=$'\\x1e '\n")
	b.WriteString("__cellard_n=0 __cellard_s=0 __cellard_f= __cellard_undo= __cellard_bad= __cellard_in= __cellard_i= __cellard_q= __cellard_a= __cellard_atexit= __cellard_args=() __cellard_r=()\n")
	for _, v := range []struct{ name, text string }{{"loop", loopText}, {"exit", exitText}, {"copy", copyText}, {"begin", beginText}} {
		fmt.Fprintf(&b, "\\builtin readonly __cellard_%s=%s\n", v.name, quote(p.in(v.text)))
	}
	b.WriteString(p.in(functionsText))
	b.WriteString("\n{ \\builtin echo \"$BASH_VERSION\"; " + tellNames + "; } >" + p.setup + " 2>/dev/null")
	b.WriteString("\n\\builtin eval \"$__cellard_begin\"\n")
	return b.String()
}

// quote makes one word of any text, on one line.
func quote(s string) string {
	plain := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f || s[i] == '\'' || s[i] == '!' {
			plain = false
			break
		}
	}
	if plain {
		return "'" + s + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// trap is one of a shell's traps.
type trap struct {
	action string // as a word of the shell's
	signal string
}

// Those that the kernel itself sets, and those that are off while no cell runs: they
// would be run by the loop.
func (t trap) ours() bool { return t.signal == "EXIT" || t.signal == "SIGUSR2" }
func (t trap) quiet() bool {
	return t.signal == "DEBUG" || t.signal == "ERR" || t.signal == "RETURN"
}

func (t trap) String() string { return `\builtin trap -- ` + t.action + " " + t.signal + "; " }

// noTrap is what the function trap sets where a trap is to be taken away.
const noTrap = `\builtin :`

// parseTraps reads what trap -p prints. Whatever else is in the text, such as the output
// of a DEBUG trap, is passed over.
func parseTraps(text string) (all []trap) {
	const begin = "trap -- '"
	for {
		i := strings.Index(text, begin)
		if i < 0 {
			return all
		}
		text = text[i+len(begin):]
		var action strings.Builder
		for {
			end := strings.IndexByte(text, '\'')
			if end < 0 {
				return all
			}
			action.WriteString(text[:end])
			text = text[end+1:]
			rest, ok := strings.CutPrefix(text, `\''`) // a quote in it
			if !ok {
				break
			}
			action.WriteByte('\'')
			text = rest
		}
		name, rest, _ := strings.Cut(text, "\n")
		if name = strings.TrimPrefix(name, " "); name == "" || strings.ContainsAny(name, " '\"$`;&|<>()\\") {
			continue
		}
		text = rest
		if action.String() == noTrap {
			continue
		}
		all = append(all, trap{quote(action.String()), name})
	}
}

// environment is the code that gives a cell its variables, and that which takes them
// back unless the cell has changed them.
func environment(names []string, values map[string]string) (do, undo string) {
	var b, u strings.Builder
	for i, name := range names {
		n, value := strconv.Itoa(i), quote(values[name])
		fmt.Fprintf(&b, `__cellard_old[%s]=${%s-} __cellard_was[%s]=${%s+x}${%s@a}; `, n, name, n, name, name)
		fmt.Fprintf(&b, `\builtin export %s=%s 2>/dev/null || __cellard_bad=%s; `, name, value, name)
		fmt.Fprintf(&u, `if [[ ${%s-} == %s ]]; then case ${__cellard_was[%s]} in `, name, value, n)
		fmt.Fprintf(&u, `'') \builtin unset -v %s;; `, name)
		fmt.Fprintf(&u, `x*x*) %s=${__cellard_old[%s]};; `, name, n)
		fmt.Fprintf(&u, `*) %s=${__cellard_old[%s]}; \builtin export -n %s;; esac; fi; `, name, n, name)
	}
	return b.String(), u.String()
}

// directory is the same for the current directory.
func directory(dir string) (do, undo string) {
	d := quote(dir)
	return `__cellard_pwd=$PWD __cellard_before=${OLDPWD-}; CDPATH= \builtin cd -- ` + d + ` >/dev/null 2>&1 || __cellard_bad=cwd; `,
		`if [[ . -ef ` + d + ` ]]; then CDPATH= \builtin cd -- "$__cellard_pwd" >/dev/null 2>&1; OLDPWD=$__cellard_before; fi; `
}

// endingTraps are for a shell whose predecessor was ended by a signal. In bash 5.2 the
// copies of such a one run no EXIT trap at the next of those signals, so these exit.
func (s *shell) endingTraps(told []trap) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, ok := s.dead[s.before]; !ok || !was.Signaled() {
		return ""
	}
	var b strings.Builder
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGUSR1, unix.SIGALRM, unix.SIGTERM} {
		name := unix.SignalName(sig)
		if !slices.ContainsFunc(told, func(t trap) bool { return t.signal == name }) {
			fmt.Fprintf(&b, `\builtin trap '\builtin exit %d' %s; `, 128+int(sig), name)
		}
	}
	return b.String()
}
