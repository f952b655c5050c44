package kernels

import (
	"context"

	"github.com/cellard/cellard/kernels/bash"
	"github.com/cellard/cellard/protocol/api"
)

// bashRunner runs Bash by a kernel of our own.
func (c *Catalogue) bashRunner(o Options) runner {
	finder := bash.NewFinder(o.search())
	return runner{
		language: "bash",
		kernel:   bash.Implementation,
		forget:   finder.Forget,
		find: func(ctx context.Context) (*found, error) {
			program, _, err := finder.Find(ctx)
			if err != nil {
				return nil, api.Errorf(api.CodeKernelFailed, "%v", err).WithHint("%s", bash.Hint)
			}
			launch, err := c.ownLaunch("bash", program)
			if err != nil {
				return nil, err
			}
			return &found{launch: launch, path: program, version: bash.Version}, nil
		},
	}
}
