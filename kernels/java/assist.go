package java

import (
	"context"
	"fmt"

	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// ask asks Java about code, and returns the answer's fields.
func (l *Language) ask(ctx context.Context, kind byte, fields func(b *builder)) (*frame, error) {
	answer := make(chan *frame, 1)
	l.mu.Lock()
	l.last++ // cells and calls are numbered together
	id := l.last
	l.calls[id] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, id)
	}()
	b := newFrame(kind).number(id)
	fields(b)
	if err := l.m.send(b); err != nil {
		return nil, err
	}
	select {
	case f, ok := <-answer:
		if !ok {
			return nil, errGone
		}
		return f, nil
	case <-l.m.dead:
		return nil, errGone
	case <-ctx.Done():
		return nil, fmt.Errorf("java: no answer: %w", context.Cause(ctx))
	}
}

// Complete implements kernel.Language.
func (l *Language) Complete(ctx context.Context, code string, cursor int) (kernel.Completion, error) {
	f, err := l.ask(ctx, toComplete, func(b *builder) { b.small(cursor).text(code) })
	if err != nil {
		return kernel.Completion{}, err
	}
	c := kernel.Completion{Start: f.small(), End: f.small()}
	for range f.count() {
		c.Matches = append(c.Matches, f.text())
	}
	return c, f.err()
}

// Inspect implements kernel.Language.
func (l *Language) Inspect(ctx context.Context, code string, cursor, detail int) (kernel.Inspection, error) {
	f, err := l.ask(ctx, toInspect, func(b *builder) { b.small(cursor).small(detail).text(code) })
	if err != nil {
		return kernel.Inspection{}, err
	}
	text := f.text()
	if text == "" {
		return kernel.Inspection{}, f.err()
	}
	return kernel.Inspection{Found: true, Data: kernel.Bundle{"text/plain": text}}, f.err()
}

// IsComplete implements kernel.Language.
func (l *Language) IsComplete(ctx context.Context, code string) (kernel.Completeness, error) {
	f, err := l.ask(ctx, toIsComplete, func(b *builder) { b.text(code) })
	if err != nil {
		return kernel.Completeness{}, err
	}
	return kernel.Completeness{Status: f.text(), Indent: f.text()}, f.err()
}
