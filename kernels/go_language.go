package kernels

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/kernels/golang"
	"github.com/cellard/cellard/protocol/api"
)

// buildWithin bounds what the Go kernel builds at its first start: the standard library
// took 40 s to 5 minutes on two cores, by what else they did.
const buildWithin = 20 * time.Minute

// goRunner runs Go by a kernel of our own.
func (c *Catalogue) goRunner(o Options) runner {
	finder := golang.NewFinder(golang.FinderOptions{Search: o.search()})
	return runner{
		language: "go",
		kernel:   golang.Implementation,
		forget:   finder.Forget,
		warm: func(ctx context.Context, _ *found, say func(string)) error {
			tool, err := finder.Find(ctx)
			if err != nil {
				return err
			}
			return golang.Warm(ctx, tool, say)
		},
		partly: func(ctx context.Context) *api.Error {
			_, err := finder.Find(ctx)
			if lacks := (*golang.NotFoundError)(nil); errors.As(err, &lacks) && lacks.NoCompiler {
				return notFound(err, "")
			}
			return nil
		},
		find: func(ctx context.Context) (*found, error) {
			tool, err := finder.Find(ctx)
			if err != nil {
				return nil, notFound(err, "install Go where its kernel looks for it")
			}
			launch, err := c.ownLaunch("go", tool.Program)
			if err != nil {
				return nil, err
			}
			launch.Env, launch.Temp = append(slices.Clip(launch.Env), golang.WaitVariable+"=1"), true
			launch.StartTimeout, launch.StartNotice = buildWithin, "building what Go cells need, once for this toolchain: a minute or two"
			if dir := os.Getenv(golang.CacheVariable); dir != "" {
				launch.Env = append(slices.Clip(launch.Env), golang.CacheVariable+"="+dir)
			}
			f := &found{launch: launch, path: tool.Program, version: golang.Version}
			if !o.goPrepared(tool) {
				f.first = "its first start builds what cells need, for minutes"
				f.prepare = "cellard languages install go does that beforehand, as root for every user"
			}
			return f, nil
		},
	}
}

// goPrepared tells whether what Go cells need has been built for those that run them.
func (o Options) goPrepared(tool *golang.Toolchain) bool {
	uid := os.Geteuid()
	if o.Credential != nil {
		uid = int(o.Credential.Uid)
	}
	return golang.Prepared(tool, func(name string) string {
		if dir := os.Getenv(name); name == golang.CacheVariable && dir != "" {
			return dir // as the launch has it
		}
		return environ.Get(o.Env, name)
	}, uid)
}
