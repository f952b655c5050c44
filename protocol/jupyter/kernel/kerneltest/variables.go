package kerneltest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cellard/cellard/protocol/api"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// Variables are a session's, how many there are in all, and those that are told one a
// line. within keeps a kernel that hangs from hanging the test.
func Variables(t testing.TB, l kernel.Lister, within time.Duration) (list []api.Variable, total int, lines string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	list, total, err := l.Variables(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, v := range list {
		size, _ := json.Marshal(v.Size)
		fmt.Fprintf(&b, "%s %s %s %s\n", v.Name, v.Type, size, v.Preview)
	}
	return list, total, b.String()
}
