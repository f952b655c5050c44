package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cellard/cellard/mime"
	"github.com/cellard/cellard/protocol/api"
)

// good is what holds of every cell that ran well.
func good(x *api.Execution) error {
	if x.Status != api.StatusOK || x.State != api.StateKept || x.Error != nil || x.LostBytes != 0 {
		return fmt.Errorf("want ok with the state kept and nothing lost, not %s, %s, %d bytes lost, %+v", x.Status, x.State, x.LostBytes, x.Error)
	}
	if x.Stderr != "" {
		return fmt.Errorf("stderr has %q", x.Stderr)
	}
	return nil
}

func both(a, b func(*api.Execution) error) func(*api.Execution) error {
	return func(x *api.Execution) error {
		if err := a(x); err != nil {
			return err
		}
		return b(x)
	}
}

// printed wants a text in stdout.
func printed(want string) func(*api.Execution) error {
	return func(x *api.Execution) error {
		if !strings.Contains(x.Stdout, want) {
			return fmt.Errorf("stdout has no %q", want)
		}
		return good(x)
	}
}

// text wants a value.
func text(want string) func(*api.Execution) error {
	return func(x *api.Execution) error {
		var got string
		if len(x.Results) != 1 || !x.Results[0].Main || json.Unmarshal(x.Results[0].Data["text/plain"], &got) != nil || got != want {
			return fmt.Errorf("want the value %s", want)
		}
		return good(x)
	}
}

// table wants a table of so many rows that has these columns.
func table(rows int, columns ...string) func(*api.Execution) error {
	return func(x *api.Execution) error {
		var t mime.Table
		if len(x.Results) != 1 || json.Unmarshal(x.Results[0].Data[mime.TableType], &t) != nil {
			return fmt.Errorf("want one result, a table")
		}
		if len(t.Rows) != rows || t.RowCount != int64(rows) || len(t.Types) != len(t.Columns) {
			return fmt.Errorf("want %d rows, not %d of %d", rows, len(t.Rows), t.RowCount)
		}
		for _, c := range columns {
			if !slices.Contains(t.Columns, c) {
				return fmt.Errorf("no column %s in %q", c, t.Columns)
			}
		}
		return good(x)
	}
}

// inline wants one chart, in the answer itself.
func inline(x *api.Execution) error {
	if len(x.Results) != 1 || x.Results[0].Data["image/png"] == nil {
		return fmt.Errorf("want one chart, in the answer")
	}
	return good(x)
}

// byRef wants one chart, too large for the answer.
func byRef(x *api.Execution) error {
	if len(x.Results) != 1 || x.Results[0].Refs["image/png"].Bytes == 0 {
		return fmt.Errorf("want one chart, by a ref")
	}
	return good(x)
}
