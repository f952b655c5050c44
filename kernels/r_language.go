package kernels

import (
	"context"
	"errors"

	"github.com/cellard/cellard/kernels/r"
	"github.com/cellard/cellard/protocol/api"
)

// rRunner runs R by IRkernel, with our launcher.
func rRunner(o Options, settings []string) runner {
	finder := r.NewFinder(r.Options{Env: o.Env, Dir: o.Dir, Timeout: o.ProbeTimeout, Credential: o.Credential})
	return runner{
		language: "r",
		kernel:   "IRkernel",
		forget:   finder.Forget,
		find: func(ctx context.Context) (*found, error) {
			program, err := finder.Find(ctx)
			if err != nil {
				return nil, rError(err)
			}
			return &found{
				launch: &Launch{
					Language:      "r",
					KernelName:    "ir",
					Argv:          r.Argv(program.Program),
					Env:           append(r.Env(o.Env), settings...),
					Files:         r.Files(),
					InterruptMode: "signal",
					Transport:     "ipc",
					CellEnv:       true,
				},
				path:    program.Program,
				version: program.IRkernel,
			}, nil
		},
	}
}

func rError(err error) *api.Error {
	failure := api.Errorf(api.CodeKernelFailed, "%v", err)
	var missing *r.NotFoundError
	if errors.As(err, &missing) {
		return failure.WithHint("%s", missing.Hint())
	}
	return failure
}
