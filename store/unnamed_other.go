//go:build !linux

package store

import (
	"errors"
	"os"
)

// Files without a name that can get one are Linux's alone.

func openUnnamed(*os.File) (*os.File, error)    { return nil, errors.ErrUnsupported }
func nameUnnamed(_, _ *os.File, _ string) error { return errors.ErrUnsupported }
func probeUnnamed(*os.File) bool                { return false }
