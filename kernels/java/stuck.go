package java

import (
	"errors"
	"strings"
)

// stopper stops threads that are deep in a library, where no check stands, by the
// debugger's interface.
type stopper struct {
	d     *debugger
	class uint64            // cellard.kernel.Stopper
	field map[string]uint64 // its own
	known map[uint64]classInfo
}

// classInfo is what is asked about a class once.
type classInfo struct {
	signature string
	// initializer is the method that initializes it; 0 where it has none.
	initializer uint64
}

// call is a frame of a thread: a method, and the class that has it.
type call struct{ class, method uint64 }

func newStopper(d *debugger) *stopper {
	return &stopper{d: d, known: make(map[uint64]classInfo)}
}

// maxKnown bounds the classes that are remembered.
const maxKnown = 10_000

// stop stops the threads that Java's Stopper names. It is called again and again while
// they last; hard tells that some time has passed, and that what can be harmed is now
// harmed rather than waited for.
func (s *stopper) stop(hard bool) error {
	if s.class == 0 {
		classes, err := s.d.classes("Lcellard/kernel/Stopper;")
		if err != nil {
			return err
		}
		if len(classes) != 1 {
			return errors.New("java: there is no Stopper")
		}
		if s.field, err = s.d.fields(classes[0]); err != nil {
			return err
		}
		s.class = classes[0]
	}
	held, err := s.d.statics(s.class, s.field["stuck"], s.field["ERROR"])
	if err != nil || held[0] == 0 {
		return err
	}
	defer s.d.forget(held...)
	threads, err := s.d.elements(held[0])
	if err != nil {
		return err
	}
	defer s.d.forget(threads...)
	for _, t := range threads {
		if e := s.stopThread(t, held[1], hard); e != nil {
			err = e
		}
	}
	return err
}

// stopThread stops one, unless that would break what is not the cell's. It is looked at
// while it stands still.
func (s *stopper) stopThread(thread, throwable uint64, hard bool) error {
	var b builder
	if _, err := s.d.ask(threadSuspend, *b.number(thread)); err != nil {
		return err
	}
	defer func() { _, _ = s.d.ask(threadResume, b) }()
	ok, err := s.mayStop(thread, hard)
	if err != nil || !ok {
		return err
	}
	var c builder
	_, err = s.d.ask(threadStop, *c.number(thread).number(throwable))
	return err
}

// topFrames and bottomFrames are how many frames are looked at: of a stack that is deep,
// what runs now, and who began it.
const topFrames, bottomFrames = 200, 50

func (s *stopper) mayStop(thread uint64, hard bool) (bool, error) {
	var b builder
	reply, err := s.d.ask(threadFrameCount, *b.number(thread))
	if err != nil {
		return false, err
	}
	depth := reply.small()
	calls, err := s.frames(thread, 0, min(depth, topFrames))
	if err != nil {
		return false, err
	}
	if from := max(topFrames, depth-bottomFrames); from < depth {
		bottom, err := s.frames(thread, from, depth-from)
		if err != nil {
			return false, err
		}
		calls = append(calls, bottom...)
	}
	cells, engine := false, false
	for _, f := range calls {
		class, err := s.about(f.class)
		if err != nil {
			return false, err
		}
		name := class.signature
		switch {
		case name == "Lcellard/kernel/Engine;":
			engine = true
		case name == "Lcellard/kernel/CellThread;":
			cells = true
		case engine:
		case guarded(name):
			return false, nil
		case !hard && (delicate(name) || f.method == class.initializer && !strings.HasPrefix(name, "LREPL/")):
			return false, nil
		}
	}
	// The cells' thread is stopped only where a cell is on it: else the next would be.
	return !cells || engine, nil
}

// frames are a thread's frames, the newest first.
func (s *stopper) frames(thread uint64, from, n int) ([]call, error) {
	var b builder
	reply, err := s.d.ask(threadFrames, *b.number(thread).small(from).small(n))
	if err != nil {
		return nil, err
	}
	var calls []call
	for range reply.count() {
		reply.number() // the frame
		reply.take(1)
		calls = append(calls, call{class: reply.number(), method: reply.number()})
		reply.number() // where in it
	}
	return calls, reply.err()
}

func (s *stopper) about(class uint64) (classInfo, error) {
	if c, ok := s.known[class]; ok {
		return c, nil
	}
	signature, err := s.d.signature(class)
	if err != nil {
		return classInfo{}, err
	}
	methods, err := s.d.methods(class)
	c := classInfo{signature: signature, initializer: methods["<clinit>"]}
	if err == nil && len(s.known) < maxKnown {
		s.known[class] = c
	}
	return c, err
}

// guarded are classes of the kernel that must do what they do whole.
func guarded(signature string) bool {
	name, own := strings.CutPrefix(signature, "Lcellard/kernel/")
	if !own {
		return false
	}
	for _, whole := range []string{"Wire", "Calls", "Loader", "Threads", "Stopper", "Environment"} {
		if strings.HasPrefix(name, whole) {
			return true
		}
	}
	return false
}

// delicate are classes of the JDK that are better left alone: a class that is stopped
// while it is loaded can't be loaded again. (Nor can one be used that is stopped while it
// is initialized, the whole session long: see mayStop.)
func delicate(signature string) bool {
	for _, prefix := range []string{"Ljava/lang/ClassLoader", "Ljdk/internal/loader/", "Ljava/lang/invoke/", "Ljava/util/concurrent/locks/"} {
		if strings.HasPrefix(signature, prefix) {
			return true
		}
	}
	return false
}
