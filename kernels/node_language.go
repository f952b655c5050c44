package kernels

import (
	"context"
	"errors"

	"github.com/cellard/cellard/kernels/node"
	"github.com/cellard/cellard/protocol/api"
)

// nodeRunner runs JavaScript or TypeScript by a kernel of our own.
func (c *Catalogue) nodeRunner(o Options, language string) runner {
	finder := node.NewFinder(node.FinderOptions{Env: o.Env, Dir: o.Dir, Timeout: o.ProbeTimeout, Credential: o.Credential})
	return runner{
		language: language,
		kernel:   node.Implementation,
		forget:   finder.Forget,
		find: func(ctx context.Context) (*found, error) {
			f, err := finder.Find(ctx)
			if err != nil {
				failure := api.Errorf(api.CodeKernelFailed, "%v", err).WithHint("start that Node by hand to see what it lacks")
				if missing := (*node.NotFoundError)(nil); errors.As(err, &missing) {
					failure = failure.WithHint("%s", missing.Hint())
				}
				return nil, failure
			}
			launch, err := c.ownLaunch(language, f.Program)
			if err != nil {
				return nil, err
			}
			return &found{launch: launch, path: f.Program, version: f.Version}, nil
		},
	}
}
