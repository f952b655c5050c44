package environ

import "os"

// TakeTemp is the directory that the agent has made for a kernel's own temporary files,
// and removes after it; "" where there is none. What the kernel starts has TMPDIR as it
// was before: see Launch.Temp of package kernels.
func TakeTemp() string {
	was, given := os.LookupEnv("CELLARD_TMPDIR")
	if !given {
		return ""
	}
	own := os.Getenv("TMPDIR")
	os.Unsetenv("CELLARD_TMPDIR")
	if was == "" {
		os.Unsetenv("TMPDIR")
	} else {
		os.Setenv("TMPDIR", was)
	}
	return own
}
