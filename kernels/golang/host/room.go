package host

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Room panics where n values of a size are more than the memory that there is: the
// runtime would end the process, or the system would.
func (cellHost) Room(n, size int) {
	if have := memory(); have > 0 && n > have/size {
		panic(noRoom{float64(n) * float64(size), have})
	}
}

// noRoom is the panic of a size that can't be had.
type noRoom struct {
	want float64
	have int
}

func (e noRoom) Error() string {
	return fmt.Sprintf("make: %.3g GB are wanted, and there are %.3g GB of memory in all", e.want/(1<<30), float64(e.have)/(1<<30))
}

// memory is what this process can have at most, in bytes; 0 where that isn't known.
func memory() int {
	have := 0
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		if f := bytes.Fields(b); len(f) > 1 && string(f[0]) == "MemTotal:" {
			kb, _ := strconv.Atoi(string(f[1]))
			have = kb << 10
		}
	}
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.Atoi(string(bytes.TrimSpace(b))); err == nil && (have == 0 || limit < have) {
			have = limit
		}
	}
	return have
}
