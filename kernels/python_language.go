package kernels

import (
	"context"

	"github.com/cellard/cellard/kernels/python"
)

// pythonHelpers is how multiprocessing and joblib name the process that removes shared
// memory and semaphores. It ignores SIGINT and SIGTERM; without it Python warns.
var pythonHelpers = []string{"resource_tracker import main"}

// pythonRunner runs Python by ipykernel, with our launcher.
func pythonRunner(o Options, settings []string) runner {
	finder := python.NewFinder(python.Options{
		Command: o.Python, Env: o.Env, Dir: o.Dir, Timeout: o.ProbeTimeout, Credential: o.Credential,
	})
	return runner{
		language: "python",
		kernel:   "ipykernel",
		named:    o.Python != "",
		forget:   finder.Forget,
		find: func(ctx context.Context) (*found, error) {
			interpreter, err := finder.Find(ctx)
			if err != nil {
				return nil, notFound(err, "start that Python by hand to see what it lacks, or name another with --python")
			}
			return &found{
				launch: &Launch{
					Language:      "python",
					KernelName:    "python3",
					DisplayName:   "Python 3 (ipykernel)",
					Argv:          python.Argv(interpreter.Argv),
					Env:           settings,
					Files:         python.Files(),
					InterruptMode: "signal",
					WhileIgnored:  python.WhileIgnored,
					Transport:     "ipc",
					CellEnv:       true,
					Waits:         true,
					Helpers:       pythonHelpers,
				},
				path:    interpreter.Executable,
				version: interpreter.IPykernel,
			}, nil
		},
	}
}
