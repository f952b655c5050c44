package node

import (
	"context"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

var _ kernel.Lister = (*Kernel)(nil)

// Variables is a kernel.Lister's: js/variables.js looks at them.
func (k *Kernel) Variables(ctx context.Context) ([]api.Variable, int, error) {
	var found struct {
		Data  []api.Variable `json:"data"`
		Total int            `json:"total"`
	}
	err := k.ask(ctx, map[string]any{"op": "variables"}, &found)
	return found.Data, found.Total, err
}
