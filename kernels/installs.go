package kernels

import (
	"context"

	"github.com/cellard/cellard/protocol/api"
)

// Installable returns nil when a language that has no kernel here can be installed, else
// an *api.Error that says why not.
func (c *Catalogue) Installable(ctx context.Context, language string) error {
	r := c.runner(language)
	if r != nil && r.named {
		_, err := r.find(ctx)
		if err == nil {
			return api.Errorf(api.CodeConflict, "%s is there already", language).WithHint("run it")
		}
		return apiError(err)
	}
	if r == nil || c.install == nil {
		return api.Errorf(api.CodeKernelFailed, "%s can't be installed by the agent", language).
			WithHint("install a Jupyter kernel for it where Jupyter looks")
	}
	_, err := c.install.Check(ctx, language)
	return r.lacking(ctx, err)
}

// lacking is why a language can't be installed, or what it lacks where it is there but
// for a part: what would install all of it says nothing of that.
func (r *runner) lacking(ctx context.Context, err error) error {
	if err != nil && r.partly != nil {
		if lacks := r.partly(ctx); lacks != nil {
			return lacks
		}
	}
	return err
}

// Install installs a language and returns how its kernel is started. It waits for an
// install of it that is under way; see install.Installer.Install for tell, ctx and the
// error.
func (c *Catalogue) Install(ctx context.Context, language string, tell func(string)) (*Launch, error) {
	if err := c.Installable(ctx, language); err != nil {
		return nil, err
	}
	if err := c.install.Install(ctx, language, tell); err != nil {
		return nil, err
	}
	c.Forget(language)
	launch, err := c.Launch(ctx, language)
	if err != nil {
		failure := *apiError(err)
		failure.Message = language + " was installed, and still can't be used: " + failure.Message
		return nil, &failure
	}
	return launch, nil
}

// Warm prepares what makes a language's first start quicker, where its kernel has such a
// thing: for when an image is made. say is told what is done.
func (c *Catalogue) Warm(ctx context.Context, language string, say func(string)) error {
	r := c.runner(language)
	if r == nil || r.warm == nil {
		return nil
	}
	f, err := r.find(ctx)
	if err != nil {
		return err
	}
	return r.warm(ctx, f, say)
}

// installable adds to the line of a language that is missing how it would be installed,
// or what keeps it from being.
func (c *Catalogue) installable(ctx context.Context, l api.Language) api.Language {
	r := c.runner(l.Name)
	if l.State != api.LanguageMissing || r == nil || r.named || c.install == nil {
		return l
	}
	what, err := c.install.Check(ctx, l.Name)
	if err = r.lacking(ctx, err); err != nil {
		l.Hint = apiError(err).Hint
		return l
	}
	l.State = api.LanguageInstallable
	l.Hint = "it is installed at its first run, by: " + what
	return l
}
