package java

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// The Java Debug Wire Protocol, as little as it takes to stop a thread and to replace a
// class. The names are the specification's.
const (
	jdwpHandshake = "JDWP-Handshake"
	jdwpReply     = 0x80
	maxPacket     = 16 << 20
	// jdwpWithin bounds one answer: a machine out of memory may give none.
	jdwpWithin = 5 * time.Second
)

// command is a command set and a command in it.
type command struct{ set, number byte }

var (
	vmClassesBySignature = command{1, 2}
	vmIDSizes            = command{1, 7}
	vmDisposeObjects     = command{1, 14}
	vmRedefineClasses    = command{1, 18}
	typeSignature        = command{2, 1}
	typeFields           = command{2, 4}
	typeMethods          = command{2, 5}
	typeGetValues        = command{2, 6}
	threadSuspend        = command{11, 2}
	threadResume         = command{11, 3}
	threadFrames         = command{11, 6}
	threadFrameCount     = command{11, 7}
	threadStop           = command{11, 10}
	arrayLength          = command{13, 1}
	arrayGetValues       = command{13, 2}
)

// jdwpError is an error code of the machine's.
type jdwpError uint16

func (e jdwpError) Error() string {
	return fmt.Sprintf("java: the debugger's interface answers with error %d", uint16(e))
}

// debugger is a connection to the machine's debugger interface.
type debugger struct {
	conn net.Conn
	wg   sync.WaitGroup

	mu      sync.Mutex
	last    uint32
	waiting map[uint32]chan packet
	err     error
}

// packet is a reply.
type packet struct {
	code uint16
	data []byte
}

// newDebugger shakes hands, which is bounded in time, and begins to read. It owns the
// connection from then on.
func newDebugger(conn net.Conn) (*debugger, error) {
	d := &debugger{conn: conn, waiting: make(map[uint32]chan packet)}
	r := bufio.NewReader(conn)
	if err := d.open(r); err != nil {
		conn.Close()
		return nil, fmt.Errorf("java: debugger: %w", err)
	}
	d.wg.Add(1)
	go func() {
		defer d.wg.Done()
		d.fail(d.read(r))
	}()
	sizes, err := d.ask(vmIDSizes, nil)
	if err == nil {
		for range 5 { // of fields, methods, objects, types, frames: HotSpot's are all 8
			if sizes.small() != 8 {
				err = errors.New("java: debugger: ids of a size that is not 8")
			}
		}
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *debugger) open(r io.Reader) error {
	_ = d.conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(d.conn, jdwpHandshake); err != nil {
		return err
	}
	b := make([]byte, len(jdwpHandshake))
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	if string(b) != jdwpHandshake {
		return errors.New("what connected is no virtual machine")
	}
	return d.conn.SetDeadline(time.Time{})
}

func (d *debugger) close() {
	d.conn.Close()
	d.wg.Wait()
}

func (d *debugger) read(r io.Reader) error {
	for {
		var head [11]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(head[:])
		if n < 11 || n > maxPacket {
			return fmt.Errorf("a packet of %d bytes", n)
		}
		data := make([]byte, n-11)
		if _, err := io.ReadFull(r, data); err != nil {
			return err
		}
		if head[8]&jdwpReply == 0 {
			continue // an event: none was asked for, but of the machine's start
		}
		d.mu.Lock()
		id := binary.BigEndian.Uint32(head[4:])
		if c := d.waiting[id]; c != nil {
			delete(d.waiting, id)
			c <- packet{binary.BigEndian.Uint16(head[9:]), data}
		}
		d.mu.Unlock()
	}
}

func (d *debugger) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = fmt.Errorf("java: debugger: %w", err)
	for id, c := range d.waiting {
		delete(d.waiting, id)
		close(c)
	}
}

// ask sends a command and waits for its reply, as a frame to read fields from.
func (d *debugger) ask(c command, data []byte) (*frame, error) {
	d.mu.Lock()
	if d.err != nil {
		d.mu.Unlock()
		return nil, d.err
	}
	d.last++
	id := d.last
	answer := make(chan packet, 1)
	d.waiting[id] = answer
	b := binary.BigEndian.AppendUint32(nil, uint32(11+len(data)))
	b = binary.BigEndian.AppendUint32(b, id)
	b = append(append(b, 0, c.set, c.number), data...)
	_ = d.conn.SetWriteDeadline(time.Now().Add(jdwpWithin))
	_, err := d.conn.Write(b)
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case p, ok := <-answer:
		if !ok {
			return nil, d.err
		}
		if p.code != 0 {
			return nil, fmt.Errorf("command %d.%d: %w", c.set, c.number, jdwpError(p.code))
		}
		return &frame{rest: p.data}, nil
	case <-time.After(jdwpWithin):
		d.mu.Lock()
		delete(d.waiting, id)
		d.mu.Unlock()
		return nil, errors.New("java: the debugger's interface does not answer")
	}
}

// classes are the loaded classes of a signature.
func (d *debugger) classes(signature string) ([]uint64, error) {
	var b builder
	reply, err := d.ask(vmClassesBySignature, *b.text(signature))
	if err != nil {
		return nil, err
	}
	var ids []uint64
	for range reply.count() {
		reply.take(1) // a class, an interface or an array
		ids = append(ids, reply.number())
		reply.small() // its status
	}
	return ids, reply.err()
}

// fields are the ids of a class's own fields, by name.
func (d *debugger) fields(class uint64) (map[string]uint64, error) {
	return d.members(typeFields, class)
}

// methods are the ids of a class's own methods, by name; of several of a name, one.
func (d *debugger) methods(class uint64) (map[string]uint64, error) {
	return d.members(typeMethods, class)
}

func (d *debugger) members(c command, class uint64) (map[string]uint64, error) {
	var b builder
	reply, err := d.ask(c, *b.number(class))
	if err != nil {
		return nil, err
	}
	ids := make(map[string]uint64)
	for range reply.count() {
		id := reply.number()
		ids[reply.text()] = id
		reply.text() // its signature
		reply.small()
	}
	return ids, reply.err()
}

// statics are the objects that static fields of a class hold; 0 is null.
func (d *debugger) statics(class uint64, fields ...uint64) ([]uint64, error) {
	var b builder
	b.number(class).small(len(fields))
	for _, f := range fields {
		b.number(f)
	}
	reply, err := d.ask(typeGetValues, b)
	if err != nil {
		return nil, err
	}
	var objects []uint64
	for range reply.count() {
		reply.take(1) // its kind: an object of some sort
		objects = append(objects, reply.number())
	}
	if len(objects) != len(fields) {
		reply.bad = true
	}
	return objects, reply.err()
}

// elements are the objects in an array.
func (d *debugger) elements(array uint64) ([]uint64, error) {
	var b builder
	reply, err := d.ask(arrayLength, *b.number(array))
	if err != nil {
		return nil, err
	}
	n := min(reply.count(), maxItems)
	if n == 0 {
		return nil, reply.err()
	}
	reply, err = d.ask(arrayGetValues, *b.small(0).small(n))
	if err != nil {
		return nil, err
	}
	reply.take(1)
	var objects []uint64
	for range reply.count() {
		reply.take(1)
		objects = append(objects, reply.number())
	}
	return objects, reply.err()
}

// signature is the signature of a class.
func (d *debugger) signature(class uint64) (string, error) {
	var b builder
	reply, err := d.ask(typeSignature, *b.number(class))
	if err != nil {
		return "", err
	}
	s := reply.text()
	return s, reply.err()
}

// forget lets the machine collect objects again that it told of.
func (d *debugger) forget(objects ...uint64) {
	var b builder
	b.small(len(objects))
	for _, o := range objects {
		b.number(o).small(1)
	}
	_, _ = d.ask(vmDisposeObjects, b)
}

// redefine replaces the bytecode of a class.
func (d *debugger) redefine(signature string, code []byte) error {
	classes, err := d.classes(signature)
	if err != nil {
		return err
	}
	if len(classes) != 1 {
		return fmt.Errorf("java: %d classes are %s", len(classes), signature)
	}
	var b builder
	b.small(1).number(classes[0]).text(string(code))
	_, err = d.ask(vmRedefineClasses, b)
	return err
}
