package cases

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
)

// check holds all of an Execution that can be told from itself and the time it took.
func (e *Expect) check(ex *api.Execution, took time.Duration) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }

	if e.Status != nil && !slices.Contains(e.Status, string(ex.Status)) {
		fault("status %q, wanted %q (error %s)", ex.Status, e.Status, brief(ex.Error))
	}
	if e.State != nil && !slices.Contains(e.State, string(ex.State)) {
		fault("state %q, wanted %q (error %s)", ex.State, e.State, brief(ex.Error))
	}
	stream := func(name, got string, want *string, has, not []string) {
		if want != nil && got != *want {
			fault("%s %.160q, wanted %.160q", name, got, *want)
		}
		for _, t := range has {
			if !strings.Contains(got, t) {
				fault("%s lacks %q: %q", name, t, tail(got))
			}
		}
		for _, t := range not {
			if strings.Contains(got, t) {
				fault("%s has %q", name, t)
			}
		}
	}
	stream("stdout", ex.Stdout, e.Stdout, e.StdoutHas, e.StdoutNot)
	stream("stderr", ex.Stderr, e.Stderr, e.StderrHas, e.StderrNot)
	e.checkResults(ex, fault)
	e.checkError(ex.Error, fault)
	if w := e.Overflow; w != nil {
		i := slices.IndexFunc(ex.Overflow, func(o api.Overflow) bool { return o.Stream == w.Stream })
		if i < 0 || ex.Overflow[i].Bytes != w.Bytes {
			fault("overflow %+v, wanted %+v", ex.Overflow, *w)
		}
	}
	if e.UnderMs != nil && took.Milliseconds() > *e.UnderMs {
		fault("took %d ms, over %d", took.Milliseconds(), *e.UnderMs)
	}
	return faults
}

func (e *Expect) checkResults(ex *api.Execution, fault func(string, ...any)) {
	if e.Results != nil && len(ex.Results) != *e.Results {
		fault("%d results, wanted %d", len(ex.Results), *e.Results)
	}
	if e.Text != nil {
		mains := slices.DeleteFunc(slices.Clone(ex.Results), func(r api.Result) bool { return !r.Main })
		if got := texts(mains); !slices.Equal(got, []string{*e.Text}) {
			fault("main text %q, wanted %q (error %s)", got, *e.Text, brief(ex.Error))
		}
	}
	for _, m := range e.MIMEs {
		if !slices.ContainsFunc(ex.Results, func(r api.Result) bool { return has(r.Data, m) || has(r.Refs, m) }) {
			var have [][]string
			for _, r := range ex.Results[:min(5, len(ex.Results))] {
				have = append(have, slices.Sorted(maps.Keys(r.Data)), slices.Sorted(maps.Keys(r.Refs)))
			}
			fault("no %s in %q", m, have)
		}
	}
	for _, t := range e.PreviewHas {
		if !slices.ContainsFunc(texts(ex.Results), func(s string) bool { return strings.Contains(s, t) }) {
			fault("no preview with %q", t)
		}
	}
	if e.Table != nil {
		e.checkTable(ex.Results, fault)
	}
}

func (e *Expect) checkTable(results []api.Result, fault func(string, ...any)) {
	i := slices.IndexFunc(results, func(r api.Result) bool { return r.Data[mime.TableType] != nil })
	if i < 0 {
		fault("no table")
		return
	}
	var table map[string]any
	if err := json.Unmarshal(results[i].Data[mime.TableType], &table); err != nil {
		fault("table: %v", err)
		return
	}
	for k, want := range e.Table {
		if got := table[k]; !reflect.DeepEqual(got, want) {
			fault("table %s %v, wanted %v", k, got, want)
		}
	}
}

func (e *Expect) checkError(got *api.CellError, fault func(string, ...any)) {
	if e.NoError && got != nil {
		fault("error %s", brief(got))
	}
	if e.Error == nil {
		return
	}
	if got == nil {
		fault("no error")
		return
	}
	if !slices.Contains(e.Error.Name, got.Name) {
		fault("error name %q, wanted %q", got.Name, e.Error.Name)
	}
	whole := got.Value + "\n" + got.Traceback
	for _, t := range e.Error.Has {
		if !strings.Contains(whole, t) {
			fault("error lacks %q: %q", t, tail(whole))
		}
	}
	if strings.Contains(whole, "\x1b[") {
		fault("error has ANSI colours: %.160q", whole)
	}
}

// checkRef fetches the bytes behind the first ref of a type.
func (a *Agent) checkRef(ctx context.Context, contextID string, ex *api.Execution, mimeType string) error {
	i := slices.IndexFunc(ex.Results, func(r api.Result) bool { return has(r.Refs, mimeType) })
	if i < 0 {
		return fmt.Errorf("there is none")
	}
	ref := ex.Results[i].Refs[mimeType]
	ans, err := a.call(ctx, "GET", "/v1/interpreter/contexts/"+contextID+"/results/"+url.PathEscape(path.Base(ref.Path)), nil, 0)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(ans.body)
	if ans.status != http.StatusOK || int64(len(ans.body)) != ref.Bytes || hex.EncodeToString(sum[:]) != ref.SHA256 {
		return fmt.Errorf("HTTP %d, %d bytes with sha256 %x, wanted %d with %s", ans.status, len(ans.body), sum, ref.Bytes, ref.SHA256)
	}
	if t, _, _ := strings.Cut(ans.header.Get("Content-Type"), ";"); t != mimeType {
		return fmt.Errorf("Content-Type %q", t)
	}
	return nil
}

// texts is the text/plain of each result, "" where it has none in data.
func texts(results []api.Result) []string {
	out := []string{}
	for _, r := range results {
		var s string
		if raw := r.Data["text/plain"]; raw != nil && json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		out = append(out, s)
	}
	return out
}

func has[V any](m map[string]V, key string) bool { _, ok := m[key]; return ok }

func tail(s string) string { return s[max(0, len(s)-160):] }

func brief(e *api.CellError) string {
	if e == nil {
		return "none"
	}
	return fmt.Sprintf("%.80q: %.160q", e.Name, e.Value)
}
