package store

import (
	"cmp"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/mime"
)

// maxScanned bounds how many names Open looks at: cells can have made any number.
const maxScanned = 8 * maxFiles

// scan removes what an earlier agent left half done in root, and adds the files
// that it left to the index, the oldest first. What else lies there stays.
func (s *Store) scan(root *os.File) error {
	type found struct {
		file
		mtime int64
	}
	var all []found
	left := maxScanned
	err := eachName(root, &left, func(name string) {
		if isScratch(name) {
			_ = removeTree(root, name) // what can't be removed takes room, no more
		}
		if !validContext(name) {
			return
		}
		out, err := s.out(root, name, false)
		if err != nil {
			return
		}
		defer out.Close()
		_ = eachName(out, &left, func(file string) {
			var st unix.Stat_t
			if !validFile(file) || unix.Fstatat(int(out.Fd()), file, &st, unix.AT_SYMLINK_NOFOLLOW) != nil ||
				st.Mode&unix.S_IFMT != unix.S_IFREG {
				return
			}
			var f found
			f.key = key{name, file}
			f.size = min(st.Size, 1<<50) // of a sparse file; it will not be served
			f.mime = mime.ByExtension(file)
			f.mtime = st.Mtim.Nano()
			all = append(all, f)
		})
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(a.mtime, b.mtime) })
	for i := range all {
		s.index.add(&all[i].file)
	}
	for len(s.index.files) > maxFiles {
		s.pushOutFile(s.index.oldest())
	}
	return nil
}

// eachName calls do for the names in dir while left is above zero.
func eachName(dir *os.File, left *int, do func(string)) error {
	for *left > 0 {
		names, err := dir.Readdirnames(256)
		for _, n := range names {
			do(n)
		}
		*left -= len(names)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
