package metrics

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
)

// ContentType is that of what Write writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Write writes all families, in the order of their names, and their series in that of
// their labels' values. A family without a series is left out. The error is w's.
func (r *Registry) Write(w io.Writer) error {
	r.mu.Lock()
	families := slices.Clone(r.families)
	r.mu.Unlock()
	slices.SortFunc(families, func(a, b *family) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	for _, f := range families {
		f.write(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (f *family) write(b *bytes.Buffer) {
	if f.read != nil {
		// A family of its own each time: two may be asked for at once.
		now := &family{name: f.name, help: f.help, kind: f.kind, labels: f.labels, series: map[string]*series{}}
		f.read(func(v float64, values ...string) { now.at(values).value += v })
		f = now
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.series) == 0 {
		return
	}
	b.WriteString("# HELP " + f.name + " " + helpEscaper.Replace(f.help) + "\n# TYPE " + f.name + " " + f.kind + "\n")
	all := make([]*series, 0, len(f.series))
	for _, s := range f.series {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *series) int { return slices.Compare(a.values, b.values) })
	for _, s := range all {
		if s.counts == nil {
			f.line(b, "", s, "", s.value)
			continue
		}
		sum := uint64(0)
		for i, n := range s.counts {
			sum += n
			le := "+Inf"
			if i < len(f.buckets) {
				le = number(f.buckets[i])
			}
			f.line(b, "_bucket", s, le, float64(sum))
		}
		f.line(b, "_sum", s, "", s.value)
		f.line(b, "_count", s, "", float64(sum))
	}
}

var (
	helpEscaper  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func (f *family) line(b *bytes.Buffer, suffix string, s *series, le string, v float64) {
	b.WriteString(f.name + suffix)
	sep := "{"
	label := func(name, value string) {
		b.WriteString(sep + name + `="` + labelEscaper.Replace(strings.ToValidUTF8(value, "\uFFFD")) + `"`)
		sep = ","
	}
	for i, name := range f.labels {
		label(name, s.values[i])
	}
	if le != "" {
		label("le", le)
	}
	if sep == "," {
		b.WriteByte('}')
	}
	b.WriteString(" " + number(v) + "\n")
}

// number writes whole numbers in full: 1e+06 is as right, but nobody's to read.
func number(v float64) string {
	if v == float64(int64(v)) && v > -1e15 && v < 1e15 {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
