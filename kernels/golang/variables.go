package golang

import (
	"context"
	"errors"

	"github.com/cellard/cellard/kernels/golang/wire"
	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

var _ kernel.Lister = (*Kernel)(nil)

// Variables is a kernel.Lister's: the front knows what counts, the worker the values.
func (k *Kernel) Variables(ctx context.Context) ([]api.Variable, int, error) {
	if err := k.wait(ctx, nil); err != nil {
		return nil, 0, err
	}
	a, err := k.compiler.ask(ctx, frontRequest{Op: "variables"})
	if replaced := (*replacedError)(nil); errors.As(err, &replaced) {
		a, err = k.compiler.ask(ctx, frontRequest{Op: "variables"}) // another knows them too
	}
	if err != nil || a.Variables == nil || len(a.Variables.List) == 0 {
		return nil, 0, err
	}
	told, err := k.worker.tell(ctx, a.Variables.List)
	if err != nil {
		return nil, 0, err
	}
	var list []api.Variable
	for i, v := range a.Variables.List {
		if i >= len(told) {
			break
		}
		one := api.Variable{Name: v.Name, Type: told[i].Type, Preview: told[i].Preview}
		if size := int64(told[i].Size); size >= 0 {
			one.Size = &size
		}
		list = append(list, one)
	}
	return list, a.Variables.Total, nil
}

// tell has the worker tell the values of variables.
func (k *worker) tell(ctx context.Context, list []wire.Place) ([]wire.Told, error) {
	k.mu.Lock()
	k.question++
	id, answer := k.question, make(chan []wire.Told, 1)
	k.told = answer
	k.mu.Unlock()
	if err := k.send(workerRequest{Op: "variables", Cell: id, Variables: list}); err != nil {
		return nil, err
	}
	select {
	case told := <-answer:
		return told, nil
	case <-k.ended:
		return nil, errors.New("the Go worker has ended")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hasTold takes the worker's answer to the last question; one to an earlier, which nobody
// waits for, is none.
func (k *worker) hasTold(m workerMessage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if m.Cell == k.question && k.told != nil {
		k.told <- m.Told
		k.told = nil
	}
}
