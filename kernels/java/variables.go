package java

import (
	"context"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

var _ kernel.Lister = (*Language)(nil)

// Variables is a kernel.Lister's: Variables.java looks at them.
func (l *Language) Variables(ctx context.Context) ([]api.Variable, int, error) {
	f, err := l.ask(ctx, toVariables, func(*builder) {})
	if err != nil {
		return nil, 0, err
	}
	total := f.small()
	var list []api.Variable
	for range f.count() {
		v := api.Variable{Name: f.text(), Type: f.text()}
		if size := int64(f.number()); size >= 0 {
			v.Size = &size
		}
		v.Preview = f.text()
		list = append(list, v)
	}
	return list, total, f.err()
}
