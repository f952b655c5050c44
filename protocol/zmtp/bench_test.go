package zmtp

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"
)

// BenchmarkEcho is the round trip of a small message over a Unix socket through
// this client, zmq4's and pyzmq's. The peer is libzmq's ROUTER or one that only
// gives bytes back, which leaves the client's own time.
func BenchmarkEcho(b *testing.B) {
	b.Run("peer=libzmq", func(b *testing.B) {
		start := func(b *testing.B) string {
			_, path, _ := startPeer(b, "echo", "ROUTER", "ipc://"+socketPath(b))
			return path
		}
		benchmarkEcho(b, start)
		b.Run("client=pyzmq", func(b *testing.B) { benchmarkPyZMQ(b, start(b)) })
	})
	b.Run("peer=bytes", func(b *testing.B) {
		benchmarkEcho(b, func(b *testing.B) string { return listenRaw(b, echoBytes) })
	})
}

func echoBytes(nc net.Conn) {
	nc.Write(goodGreeting())
	nc.Write(ready("ROUTER"))
	head := make([]byte, greetingSize+2) // and READY's header, whose body is short
	if _, err := io.ReadFull(nc, head); err != nil {
		return
	}
	if _, err := io.ReadFull(nc, make([]byte, head[greetingSize+1])); err != nil {
		return
	}
	b := make([]byte, 4096)
	for {
		n, err := nc.Read(b)
		if err != nil {
			return
		}
		if _, err := nc.Write(b[:n]); err != nil {
			return
		}
	}
}

func benchmarkEcho(b *testing.B, start func(*testing.B) (path string)) {
	message := [][]byte{{}, make([]byte, 100)}
	b.Run("client=zmtp", func(b *testing.B) {
		c := mustDial(b, "unix", start(b), Dealer, Options{})
		b.ReportAllocs()
		for b.Loop() {
			if err := c.Send(message...); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Recv(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("client=zmq4", func(b *testing.B) {
		path := start(b)
		c := zmq4.NewDealer(context.Background())
		defer c.Close()
		if err := c.Dial("ipc://" + path); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := c.SendMulti(zmq4.NewMsgFrom(message...)); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Recv(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchmarkPyZMQ has the time measured in python, without starting it.
func benchmarkPyZMQ(b *testing.B, path string) {
	const rounds = 5000
	total, n := 0.0, 0
	for b.Loop() {
		cmd := exec.CommandContext(testContext(b), python(b), filepath.Join("testdata", "peer.py"), "client", "ipc://"+path, strconv.Itoa(rounds))
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		ns, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil {
			b.Fatal(err)
		}
		total += ns
		n++
	}
	b.ReportMetric(total/float64(n), "ns/op")
}

// BenchmarkRecv takes in messages of one frame as fast as they come: in memory,
// and spilled.
func BenchmarkRecv(b *testing.B) {
	for _, size := range []int{100, 10_000, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			message := frame(0, string(make([]byte, size)))
			for len(message) < readBuffer {
				message = append(message, message...)
			}
			c := dialRaw(b, Options{}, func(nc net.Conn) {
				for {
					if _, err := nc.Write(message); err != nil {
						return
					}
				}
			})
			b.SetBytes(int64(size))
			for b.Loop() {
				frames, err := c.Recv()
				if err != nil {
					b.Fatal(err)
				}
				closeFrames(frames)
			}
			c.Close()
		})
	}
}

// BenchmarkSend sends messages of a small and a large frame.
func BenchmarkSend(b *testing.B) {
	for _, size := range []int{100, 10_000, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			c := dialRaw(b, Options{}, func(nc net.Conn) { io.Copy(io.Discard, nc) })
			head, body := make([]byte, 20), make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Send(head, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
