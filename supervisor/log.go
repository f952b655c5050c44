package supervisor

import (
	"log/slog"

	"github.com/cellard/cellard/execution"
	"github.com/cellard/cellard/internal/logging"
	"github.com/cellard/cellard/protocol/api"
)

// about is the log of what concerns one cell: its lines have the request's id, the
// execution's, the context's and the language.
func (s *session) about(e *execution.Execution) *slog.Logger {
	return s.log.With("request", e.RequestID(), "execution", e.ID())
}

// logEnd tells what a cell came to, in one line, once its readers have been told.
func (s *session) logEnd(e *execution.Execution) {
	x, refusal := e.Outcome()
	if refusal != nil {
		s.about(e).Info("a cell was refused", "error", refusal)
		return
	}
	args := []any{"generation", x.Generation, "status", x.Status, "state", x.State, "queuedMs", x.QueuedMs, "durationMs", x.DurationMs}
	if u := x.Usage; u != nil && u.CPUMs != nil {
		args = append(args, "cpuMs", *u.CPUMs)
	}
	if x.LostBytes > 0 {
		args = append(args, "lostBytes", x.LostBytes)
	}
	if x.Lost != nil {
		args = append(args, loggedLost(x.Lost)...)
	}
	if x.Error != nil {
		args = append(args, "raised", logging.Content(x.Error.Name+": "+x.Error.Value))
	}
	s.about(e).Info("a cell ended", args...)
}

// loggedLost is how a kernel went away, without its last words.
func loggedLost(l *api.Lost) []any {
	args := []any{"reason", l.Reason}
	if l.Signal != nil {
		args = append(args, "signal", *l.Signal)
	}
	if l.ExitCode != nil {
		args = append(args, "exitCode", *l.ExitCode)
	}
	return append(args, "words", logging.Content(l.Message))
}
