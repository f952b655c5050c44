package kernels

import (
	"context"

	"github.com/cellard/cellard/kernels/java"
	"github.com/cellard/cellard/protocol/api"
)

// javaRunner runs Java by a kernel of our own.
func (c *Catalogue) javaRunner(o Options) runner {
	return runner{
		language: "java",
		kernel:   java.Implementation,
		warm: func(ctx context.Context, f *found, _ func(string)) error {
			j, err := java.At(f.path)
			if err != nil {
				return err
			}
			return java.Prepare(ctx, j, "", o.Env)
		},
		find: func(context.Context) (*found, error) {
			j, err := java.Find(o.Env)
			if err != nil {
				return nil, api.Errorf(api.CodeKernelFailed, "%v", err).WithHint("%s", java.Hint())
			}
			launch, err := c.ownLaunch("java", j.Executable)
			if err != nil {
				return nil, err
			}
			launch.Temp = true
			return &found{launch: launch, path: j.Executable, version: j.Version}, nil
		},
	}
}
