package kernels

import (
	"context"

	"github.com/cellard/cellard/kernels/node"
)

// nodeRunner runs JavaScript or TypeScript by a kernel of our own.
func (c *Catalogue) nodeRunner(finder *node.Finder, language string) runner {
	return runner{
		language: language,
		kernel:   node.Implementation,
		named:    finder.Named(),
		forget:   finder.Forget,
		find: func(ctx context.Context) (*found, error) {
			f, err := finder.Find(ctx)
			if err != nil {
				return nil, notFound(err, "start that Node by hand to see what it lacks")
			}
			launch, err := c.ownLaunch(language, f.Program)
			if err != nil {
				return nil, err
			}
			return &found{launch: launch, path: f.Program, version: f.Version}, nil
		},
	}
}
