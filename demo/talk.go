package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
)

// cell is a turn of the conversation: what is asked, and what must come of it.
type cell struct {
	title   string
	code    string
	timeout time.Duration // 0: the default
	chart   string        // the file's name for the chart that it must show
	check   func(*api.Execution) error
}

// conversation is about the penguins of the Palmer Archipelago (Horst, Hill and
// Gorman 2020), whom the package palmerpenguins carries.
var conversation = []cell{
	{title: "Load", code: `
from palmerpenguins import load_penguins
penguins = load_penguins()
penguins.head()`,
		check: table(5, "species", "island", "body_mass_g")},

	{title: "Look", code: `
print(f"{len(penguins)} penguins, {penguins.isna().any(axis=1).sum()} of them with something not measured")
penguins.groupby("species").agg(
    count=("species", "size"), mass_g=("body_mass_g", "mean"), flipper_mm=("flipper_length_mm", "mean")).round(1)`,
		check: both(printed("344 penguins, 11 of them"), table(3, "count", "mass_g", "flipper_mm"))},

	{title: "Chart", chart: "mass-by-flipper.png", code: `
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(5, 3.2))
for species, some in penguins.groupby("species"):
    ax.scatter(some.flipper_length_mm, some.body_mass_g, s=8, label=species)
ax.set(xlabel="flipper, mm", ylabel="body mass, g")
_ = ax.legend()`,
		check: inline},

	{title: "A mistake", code: `
penguins.groupby("sepcies").body_mass_g.mean()`,
		check: func(x *api.Execution) error {
			if x.Status != api.StatusError || x.Error.Name != "KeyError" || !strings.Contains(x.Error.Value, "sepcies") {
				return fmt.Errorf("want a KeyError, not %s %+v", x.Status, x.Error)
			}
			return nil
		}},

	{title: "A loop without an end, given two seconds", timeout: 2 * time.Second, code: `
import numpy as np
rng = np.random.default_rng(1)
mass = penguins.body_mass_g.dropna().to_numpy()
means = []
while True:
    means.append(rng.choice(mass, mass.size).mean())`,
		check: func(x *api.Execution) error {
			if x.Status != api.StatusTimeout || x.State != api.StateKept {
				return fmt.Errorf("want a timeout with the state kept, not %s, %s", x.Status, x.State)
			}
			return nil
		}},

	{title: "Its variables are still there", code: `
low, high = np.percentile(means, [2.5, 97.5])
print(f"after {len(means):,} resamples the mean mass is {mass.mean():.0f} g, between {low:.0f} and {high:.0f}")
len(means) > 100`,
		check: both(printed("the mean mass is 4202 g"), text("True"))},

	{title: "A big chart, fetched by its ref", chart: "pairs.png", code: `
columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
fig, axes = plt.subplots(4, 4, figsize=(13, 13), dpi=150)
for row, y in enumerate(columns):
    for column, x in enumerate(columns):
        ax = axes[row, column]
        for species, some in penguins.groupby("species"):
            if x == y:
                ax.hist(some[x].dropna(), bins=20, alpha=0.6, label=species)
            else:
                ax.scatter(some[x], some[y], s=6)
        ax.set(xlabel=x, ylabel="penguins" if x == y else y)
fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="upper center", ncols=3)
fig.tight_layout(rect=(0, 0, 1, 0.98))`,
		check: byRef},
}

// talk is the conversation as it goes on.
type talk struct {
	agent   *agent
	printer *printer
	out     string
	charts  []string
}

// say sends a cell, shows what comes of it, and checks it.
func (t *talk) say(ctx context.Context, n int, c cell) error {
	code := strings.TrimPrefix(c.code, "\n")
	t.printer.rule(fmt.Sprintf("%d  %s", n, c.title))
	t.printer.code(code)
	req := api.RunRequest{Code: code, Context: "penguins"}
	if ms := c.timeout.Milliseconds(); ms > 0 {
		req.TimeoutMs = &ms
	}
	x, err := t.agent.client.Run(ctx, req)
	if err != nil {
		return err
	}
	t.printer.streams(x)
	for _, r := range x.Results {
		if err := t.result(ctx, c, r); err != nil {
			return err
		}
	}
	t.printer.ending(x)

	switch {
	case x.Generation != 1:
		return fmt.Errorf("it ran on kernel %d of the context: the variables are gone", x.Generation)
	case x.ExecutionCount != n:
		return fmt.Errorf("the kernel counts it as cell %d", x.ExecutionCount)
	case c.check == nil:
		return good(x)
	}
	return c.check(x)
}

// result shows a result: a chart goes to a file, a table is drawn, text is printed.
func (t *talk) result(ctx context.Context, c cell, r api.Result) error {
	if raw := r.Data[mime.TableType]; raw != nil {
		var table mime.Table
		if err := json.Unmarshal(raw, &table); err != nil {
			return fmt.Errorf("a table: %w", err)
		}
		t.printer.table(table)
		return nil
	}
	chart, how, err := t.png(ctx, r)
	if err != nil {
		return err
	}
	if chart != nil {
		return t.keep(c.chart, chart, how)
	}
	var s string
	if err := json.Unmarshal(r.Data["text/plain"], &s); err != nil {
		return fmt.Errorf("text/plain: %w", err)
	}
	t.printer.text(s)
	return nil
}

// png returns the bytes of a result's picture, if it is one, and how they came. Those
// of a ref are fetched, and checked by the client against what the ref says.
func (t *talk) png(ctx context.Context, r api.Result) (b []byte, how string, err error) {
	if raw := r.Data["image/png"]; raw != nil {
		err := json.Unmarshal(raw, &b) // base64, as []byte is in JSON
		return b, "in the answer", err
	}
	ref, ok := r.Refs["image/png"]
	if !ok {
		return nil, "", nil
	}
	f, err := t.agent.client.Result(ctx, "penguins", ref)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	if f.MIME != "image/png" {
		return nil, "", fmt.Errorf("the ref's Content-Type is %q", f.MIME)
	}
	if b, err = io.ReadAll(f); err != nil {
		return nil, "", err
	}
	return b, "by its ref, sha256 " + ref.SHA256[:8] + "… checked", nil
}

// keep writes a chart to a file, once it is sure to be one.
func (t *talk) keep(name string, b []byte, how string) error {
	if name == "" {
		return errors.New("a picture that nobody asked for")
	}
	size, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("the chart: %w", err)
	}
	file := filepath.Join(t.out, name)
	if err := os.WriteFile(file, b, 0o644); err != nil {
		return err
	}
	t.charts = append(t.charts, file)
	t.printer.note("[chart %d × %d, %d KB, %s → %s]", size.Width, size.Height, (len(b)+500)/1000, how, file)
	return nil
}
