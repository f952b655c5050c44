package execution

// DisplayMap tells which results a display id names: the displays of one kernel's
// cells, newest last. It is used by the kernel's goroutine alone, and is thrown
// away with the kernel.
type DisplayMap struct {
	byID  map[string][]shown
	order []string // ids in the order they came, for the bound
}

// maxDisplayIDs bounds how many ids are remembered; the oldest are forgotten,
// and an update of one of those is counted as unmatched.
const (
	maxDisplayIDs = 10_000
	maxPerID      = 1_000
	maxIDBytes    = 1 << 10
)

type shown struct {
	e *Execution
	r *result
}

func (d *DisplayMap) add(id string, s shown) {
	if id == "" || len(id) > maxIDBytes {
		return
	}
	if d.byID == nil {
		d.byID = map[string][]shown{}
	}
	old, ok := d.byID[id]
	if !ok {
		d.order = append(d.order, id)
		if len(d.order) > maxDisplayIDs {
			delete(d.byID, d.order[0])
			d.order = d.order[1:]
		}
	}
	if len(old) >= maxPerID {
		old = old[1:]
	}
	d.byID[id] = append(old, s)
}
