package mime

// TableType is the MIME type of a [Table].
const TableType = "application/vnd.runtime.table+json"

// Table is a data frame, or its first rows: what TableType's JSON holds.
type Table struct {
	Columns []string `json:"columns"`
	// Types has, for each column, one of string, integer, number, boolean,
	// datetime, duration and any.
	Types []string `json:"types"`
	// Rows holds JSON values: missing ones, NaN and infinities are null, dates are
	// ISO 8601 strings, integers past 2^53 are strings.
	Rows [][]any `json:"rows"`
	// Index is the rows' labels, null where they are only counted.
	Index any `json:"index"`
	// RowCount counts all rows, also those left out.
	RowCount  int64 `json:"rowCount"`
	Truncated bool  `json:"truncated"`
}
