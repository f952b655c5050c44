package store

import "container/list"

const (
	// maxFiles bounds the index; beyond it the oldest files are pushed out.
	maxFiles = 1 << 16
	// maxGone bounds how many names of files that were pushed out are known.
	maxGone = 1 << 13
)

// file is what the Store knows of one of its files.
type file struct {
	key    key
	size   int64
	mime   string
	sha256 string   // all of it; "" until a file of an earlier agent is read
	seen   identity // with which the content is known to have the hash
	at     *list.Element
}

// index knows the files, the oldest first, and what was pushed out.
type index struct {
	files map[key]*file
	order list.List // of *file
	used  int64     // bytes, those being written included

	gone      map[key]bool
	goneOrder list.List // of key
}

func (x *index) init() {
	x.files = map[key]*file{}
	x.gone = map[key]bool{}
}

// add makes f the newest.
func (x *index) add(f *file) {
	if old := x.files[f.key]; old != nil {
		x.remove(old)
	}
	x.files[f.key] = f
	f.at = x.order.PushBack(f)
	x.used += f.size
	if x.gone[f.key] {
		x.forget(func(k key) bool { return k == f.key })
	}
}

func (x *index) remove(f *file) {
	if x.files[f.key] == f {
		delete(x.files, f.key)
		x.order.Remove(f.at)
		x.used -= f.size
	}
}

func (x *index) oldest() *file {
	if e := x.order.Front(); e != nil {
		return e.Value.(*file)
	}
	return nil
}

// setGone remembers that there was a file k.
func (x *index) setGone(k key) {
	if x.gone[k] {
		return
	}
	x.gone[k] = true
	x.goneOrder.PushBack(k)
	if len(x.gone) > maxGone {
		delete(x.gone, x.goneOrder.Remove(x.goneOrder.Front()).(key))
	}
}

func (x *index) forget(which func(key) bool) {
	for e := x.goneOrder.Front(); e != nil; {
		next := e.Next()
		if k := e.Value.(key); which(k) {
			delete(x.gone, k)
			x.goneOrder.Remove(e)
		}
		e = next
	}
}

func (x *index) dropContext(id string) {
	for k, f := range x.files {
		if k.context == id {
			x.remove(f)
		}
	}
	x.forget(func(k key) bool { return k.context == id })
}
