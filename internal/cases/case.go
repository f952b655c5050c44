package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Case is a few steps, sent one after another to a context of their own.
type Case struct {
	Name     string `json:"name"`
	Language string `json:"language"`
	// Needs names a package or a language's feature without which the case can't pass.
	Needs string `json:"needs"`
	Steps []Step `json:"steps"`
}

// Step is one cell and what must come of it.
type Step struct {
	// Body is the request's, without the context's id.
	Body   map[string]any
	Expect Expect
	// Stall is how long the reader of a stream reads nothing; 0: no stream.
	Stall time.Duration
	Then  *Then
}

// Then is what an earlier step's execution shows after this one.
type Then struct {
	// Step counts from 1.
	Step  int      `json:"step"`
	Shown []string `json:"shown"`
}

// Expect is what must hold; a nil field is not looked at.
type Expect struct {
	Status     OneOf          `json:"status"`
	State      OneOf          `json:"state"`
	Stdout     *string        `json:"stdout"`
	Stderr     *string        `json:"stderr"`
	StdoutHas  []string       `json:"stdoutHas"`
	StderrHas  []string       `json:"stderrHas"`
	StdoutNot  []string       `json:"stdoutNot"`
	StderrNot  []string       `json:"stderrNot"`
	Text       *string        `json:"text"`
	Results    *int           `json:"results"`
	MIMEs      []string       `json:"mimes"`
	Refs       []string       `json:"refs"`
	PreviewHas []string       `json:"previewHas"`
	Table      map[string]any `json:"table"`
	Error      *ExpectError   `json:"error"`
	// NoError is an "error" that is null.
	NoError  bool `json:"-"`
	Overflow *struct {
		Stream string `json:"stream"`
		Bytes  int64  `json:"bytes"`
	} `json:"overflow"`
	UnderMs *int64 `json:"underMs"`
}

// ExpectError is what must hold of a cell's error.
type ExpectError struct {
	Name OneOf    `json:"name"`
	Has  []string `json:"has"`
}

// OneOf is a value, or a list of allowed ones.
type OneOf []string

// UnmarshalJSON takes a string or a list of strings.
func (o *OneOf) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = OneOf{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("want a string or a list of strings, not %.40s", b)
	}
	*o = list
	return nil
}

// UnmarshalJSON takes expect, stall and then apart from the request's body. A
// field of expect that is unknown is an error.
func (s *Step) UnmarshalJSON(b []byte) error {
	var own struct {
		Expect json.RawMessage `json:"expect"`
		Stall  float64         `json:"stall"`
		Then   *Then           `json:"then"`
	}
	if err := json.Unmarshal(b, &own); err != nil {
		return err
	}
	*s = Step{Stall: time.Duration(own.Stall * float64(time.Second)), Then: own.Then}
	if err := json.Unmarshal(b, &s.Body); err != nil {
		return err
	}
	for _, k := range []string{"expect", "stall", "then"} {
		delete(s.Body, k)
	}
	if own.Expect == nil {
		return fmt.Errorf("a step without expect: %.80s", b)
	}
	return s.Expect.parse(own.Expect)
}

func (e *Expect) parse(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return fmt.Errorf("expect %.80s: %w", b, err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(b, &keys); err != nil {
		return err
	}
	raw, there := keys["error"]
	e.NoError = there && string(raw) == "null"
	return nil
}

// Load reads the cases of a file.
func Load(path string) ([]Case, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []Case
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no cases", path)
	}
	for _, c := range all {
		if c.Name == "" || c.Language == "" || len(c.Steps) == 0 {
			return nil, fmt.Errorf("%s: case %q: want a name, a language and steps", path, c.Name)
		}
		for i, s := range c.Steps {
			if s.Then != nil && (s.Then.Step < 1 || s.Then.Step > i+1) {
				return nil, fmt.Errorf("%s: case %q: then.step %d names no step so far", path, c.Name, s.Then.Step)
			}
		}
	}
	return all, nil
}
