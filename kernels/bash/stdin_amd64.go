package bash

import "golang.org/x/sys/unix"

const sysSelect = unix.SYS_SELECT
