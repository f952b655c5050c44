package wire

// NoIndex is the environment variable by which a go command reads the directories of the
// standard library rather than their index in its build cache: one that is damaged, or
// can't be written, has it say "package fmt is not in std", also at every later time.
// settings is the value that the variable has.
func NoIndex(settings string) string {
	if settings != "" {
		settings += ","
	}
	return "GODEBUG=" + settings + "goindex=0"
}
