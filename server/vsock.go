package server

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/mdlayher/vsock"
)

// VsockPort is the default port: below 1024, so that no unprivileged code in the
// guest can take it first.
const VsockPort = 52

// cidAny is VMADDR_CID_ANY (vsock(7)): bound to it, a listener lives on through a
// restore of the VM that gives it another CID.
const cidAny = math.MaxUint32

// listenVsock listens on every CID of the machine, for the host alone: code in the
// guest can dial CID 1 or the guest's own, and is then seen as CID 1.
func listenVsock(address string, o ListenOptions) (*Listener, error) {
	text, ok := strings.CutPrefix(address, ":")
	port, err := strconv.ParseUint(text, 10, 32)
	if !ok || err != nil || port == 0 || port == math.MaxUint32 {
		return nil, AddressError(fmt.Sprintf("want a port and no CID, as in vsock://:%d", VsockPort))
	}
	open := o.vsock
	if open == nil {
		open = func(port uint32) (net.Listener, error) { return vsock.ListenContextID(cidAny, port, nil) }
	}
	l, err := open(uint32(port))
	switch {
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("only root may listen on a vsock port below 1024: %w", err)
	case errors.Is(err, syscall.EAFNOSUPPORT):
		return nil, fmt.Errorf("this machine has no vsock: %w", err)
	case err != nil:
		return nil, err
	}
	return &Listener{Listener: l, address: "vsock://:" + text, check: vsockCheck(o)}, nil
}

// vsockCheck refuses peers by their CID.
func vsockCheck(o ListenOptions) func(net.Conn) error {
	return func(c net.Conn) error {
		a, ok := c.RemoteAddr().(*vsock.Addr)
		if !ok {
			return fmt.Errorf("the peer's CID is not known")
		}
		if a.ContextID != vsock.Host && !slices.Contains(o.AllowCIDs, a.ContextID) {
			return fmt.Errorf("CID %d may not call here, only the host, CID %d", a.ContextID, vsock.Host)
		}
		return nil
	}
}

// VsockGuest reports whether this machine is a guest that its host can reach by
// vsock: it has a CID of its own. A host's is 2, one with loopback alone has 1,
// one with no transport any.
func VsockGuest() bool {
	if _, err := os.Stat("/dev/vsock"); err != nil {
		return false
	}
	cid, err := vsock.ContextID()
	return err == nil && cid > vsock.Host && cid != cidAny
}
