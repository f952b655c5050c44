package api

import (
	"encoding/json"
	"testing"
)

func TestStdinTakesListsOfStrings(t *testing.T) {
	for text, want := range map[string]string{
		`"live"`:    `"live"`,
		`[]`:        `[]`,
		`["a",""]`:  `["a",""]`,
		`[null]`:    "",
		`["a",1]`:   "",
		`"else"`:    "",
		`{"a":"b"}`: "",
		`null`:      `[]`,
	} {
		var s Stdin
		err := json.Unmarshal([]byte(text), &s)
		if want == "" {
			if err == nil {
				t.Errorf("%s: taken as %+v", text, s)
			}
			continue
		}
		if b, _ := json.Marshal(s); err != nil || string(b) != want {
			t.Errorf("%s: %s, %v", text, b, err)
		}
	}
}
