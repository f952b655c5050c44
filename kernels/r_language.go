package kernels

import (
	"context"

	"github.com/cellard/cellard/kernels/r"
)

// rRunner runs R by our kernel, which stands on what IRkernel does.
func rRunner(o Options, settings []string) runner {
	finder := r.NewFinder(o.search())
	return runner{
		language: "r",
		kernel:   "IRkernel",
		forget:   finder.Forget,
		find: func(ctx context.Context) (*found, error) {
			program, err := finder.Find(ctx)
			if err != nil {
				return nil, notFound(err, "start that R by hand to see what it lacks")
			}
			return &found{
				launch: &Launch{
					Language:      "r",
					KernelName:    "ir",
					DisplayName:   "R",
					Argv:          r.Argv(program.Program),
					Env:           append(r.Env(o.Env), settings...),
					Files:         r.Files(),
					Temp:          true,
					InterruptMode: "signal",
					Transport:     "ipc",
					CellEnv:       true,
					Waits:         true,
				},
				path:    program.Program,
				version: program.IRkernel,
			}, nil
		},
	}
}
