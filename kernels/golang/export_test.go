package golang

// PreparedIn is Prepared that looks into one directory alone: whoever runs a test may have
// what is whole in another.
func PreparedIn(dir string, t *Toolchain, uid int) bool {
	return find(t, "", []string{dir}, uid) != nil
}
