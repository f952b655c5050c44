package jupyter

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"sync"

	"github.com/cellard/cellard/protocol/zmtp"
)

// SchemeSHA256 is the signature scheme that Jupyter's own implementations use.
const SchemeSHA256 = "hmac-sha256"

// historySize is how many signatures are remembered against replays.
// jupyter_client remembers 65,536 a session; here each kernel has its own, and a
// replay can come from nobody but that kernel.
const historySize = 4096

// Why a message was refused.
var (
	ErrSignature = errors.New("jupyter: the signature doesn't match the message")
	ErrReplay    = errors.New("jupyter: a message with this signature came before")
)

// Signer signs messages and checks their signatures, with the key and scheme of a
// connection file. It can be used from several goroutines.
type Signer struct {
	hashes *sync.Pool // of *keyedHash; nil: messages are not signed
	length int        // of a signature, in hexadecimal digits

	mu     sync.Mutex
	seen   map[uint64]struct{} // the beginnings of the latest signatures
	recent []uint64            // the same as a ring
	oldest int
}

// NewSigner makes a Signer. An empty key means that messages are neither signed nor
// checked. The empty scheme is hmac-sha256; hmac-sha1, -sha224, -sha384 and
// -sha512 are known too, by Python's names for them (hashlib), as in the spec's
// section "Connection files".
func NewSigner(scheme, key string) (*Signer, error) {
	if scheme == "" {
		scheme = SchemeSHA256
	}
	var newHash func() hash.Hash
	switch strings.ToLower(scheme) {
	case SchemeSHA256:
		newHash = sha256.New
	case "hmac-sha1":
		newHash = sha1.New
	case "hmac-sha224":
		newHash = sha256.New224
	case "hmac-sha384":
		newHash = sha512.New384
	case "hmac-sha512":
		newHash = sha512.New
	default:
		return nil, fmt.Errorf("jupyter: unknown signature scheme %.64q: use %s", scheme, SchemeSHA256)
	}
	s := &Signer{}
	if key != "" {
		s.length = hex.EncodedLen(newHash().Size())
		s.hashes = &sync.Pool{New: func() any { return &keyedHash{Hash: hmac.New(newHash, []byte(key))} }}
		s.seen = make(map[uint64]struct{})
	}
	return s, nil
}

// Sign returns the signature of a message's header, parent header, metadata and
// content, in hexadecimal. Without a key it is empty.
func (s *Signer) Sign(frames ...[]byte) []byte {
	if s.hashes == nil {
		return nil
	}
	h := s.hashes.Get().(*keyedHash)
	defer s.hashes.Put(h)
	h.Reset()
	for _, f := range frames {
		h.Write(f)
	}
	_, digits := h.digest()
	return bytes.Clone(digits)
}

// Verify checks a signature over frames as they were received, in constant time,
// then whether it came before. A spilled frame is streamed. Buffers are not signed.
func (s *Signer) Verify(signature []byte, frames []*zmtp.Frame) error {
	if s.hashes == nil {
		return nil
	}
	if len(signature) != s.length {
		return fmt.Errorf("%w: it has %d bytes, not %d", ErrSignature, len(signature), s.length)
	}
	h := s.hashes.Get().(*keyedHash)
	defer s.hashes.Put(h)
	h.Reset()
	for _, f := range frames {
		if b, ok := f.Bytes(); ok {
			h.Write(b)
		} else if _, err := io.Copy(h, io.NewSectionReader(f.ReaderAt(), 0, f.Len())); err != nil {
			return fmt.Errorf("jupyter: read a spilled frame: %w", err)
		}
	}
	sum, digits := h.digest()
	if !hmac.Equal(digits, signature) {
		return ErrSignature
	}
	if !s.remember(binary.LittleEndian.Uint64(sum)) {
		return ErrReplay
	}
	return nil
}

// remember tells whether a signature is new, by its first 64 bits, and keeps it.
func (s *Signer) remember(sig uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen[sig]; ok {
		return false
	}
	if len(s.recent) < historySize {
		s.recent = append(s.recent, sig)
	} else {
		delete(s.seen, s.recent[s.oldest])
		s.recent[s.oldest] = sig
		s.oldest = (s.oldest + 1) % historySize
	}
	s.seen[sig] = struct{}{}
	return true
}

// keyedHash is an HMAC with room for its results.
type keyedHash struct {
	hash.Hash
	sum [sha512.Size]byte
	hex [2 * sha512.Size]byte
}

// digest is the sum, and its digits; both are good until the next one.
func (h *keyedHash) digest() (sum, digits []byte) {
	sum = h.Sum(h.sum[:0])
	return sum, hex.AppendEncode(h.hex[:0], sum)
}
