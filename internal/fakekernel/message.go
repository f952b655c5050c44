package fakekernel

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"
)

const delimiter = "<IDS|MSG>"

// A message is a request as it came, or what is about to be sent.
type message struct {
	identities [][]byte
	header     json.RawMessage
	parent     json.RawMessage
	metadata   json.RawMessage
	content    json.RawMessage
	buffers    [][]byte
}

type messageHeader struct {
	ID       string `json:"msg_id"`
	Session  string `json:"session"`
	Username string `json:"username"`
	Date     string `json:"date"`
	Type     string `json:"msg_type"`
	Version  string `json:"version"`
}

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only what this package made itself is marshalled
	}
	return b
}

func (k *kernel) newHeader(msgType string) json.RawMessage {
	return mustJSON(messageHeader{newID(), k.session, "fake", time.Now().UTC().Format(time.RFC3339Nano), msgType, "5.3"})
}

func (k *kernel) newMessage(msgType string, parent *message, content any) *message {
	m := &message{
		header:   k.newHeader(msgType),
		parent:   json.RawMessage("{}"),
		metadata: json.RawMessage("{}"),
		content:  mustJSON(content),
	}
	if parent != nil {
		m.parent = parent.header
	}
	return m
}

func (m *message) parts() [][]byte { return [][]byte{m.header, m.parent, m.metadata, m.content} }

func (k *kernel) sign(parts ...[]byte) []byte {
	if k.info.Key == "" {
		return nil
	}
	h := hmac.New(sha256.New, []byte(k.info.Key))
	for _, p := range parts {
		h.Write(p)
	}
	return hex.AppendEncode(nil, h.Sum(nil))
}

// frames are the wire's, with its topic or identities in front.
func (k *kernel) frames(m *message) [][]byte {
	frames := append([][]byte{}, m.identities...)
	frames = append(frames, []byte(delimiter), k.sign(m.parts()...))
	frames = append(frames, m.parts()...)
	return append(frames, m.buffers...)
}

func (k *kernel) parse(frames [][]byte) (*message, error) {
	m := &message{}
	for len(frames) > 0 && string(frames[0]) != delimiter {
		m.identities = append(m.identities, frames[0])
		frames = frames[1:]
	}
	if len(frames) < 6 {
		return nil, errors.New("a message of too few frames")
	}
	signature := frames[1]
	m.header, m.parent, m.metadata, m.content = frames[2], frames[3], frames[4], frames[5]
	m.buffers = frames[6:]
	if !bytes.Equal(signature, k.sign(m.parts()...)) {
		return nil, errors.New("a message with a wrong signature")
	}
	for _, p := range m.parts() {
		if !json.Valid(p) {
			return nil, errors.New("a message that isn't JSON")
		}
	}
	return m, nil
}

func (m *message) msgType() string {
	var h messageHeader
	json.Unmarshal(m.header, &h)
	return h.Type
}
