// Package live is what cells are compiled against. It is small, since each cell's plugin
// is linked with all that the cell imports: what it offers is done by a Host, which the
// worker sets before the first cell runs (package host). Nothing here is for users.
package live
