package main

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// figure is one thing that is measured.
type figure struct {
	name, about string
	measure     func(*env) ([]row, error)
}

var figures = []figure{
	{"cell", "the round trip of a Python cell, pass", cellFigure},
	{"echo", "the round trip of 100 bytes to libzmq's ROUTER, over a Unix socket", echoFigure},
	{"stdout", "100 MB of stdout", stdoutFigure},
	{"png", "a 20 MB PNG shown", pngFigure},
	{"stall", "20,000 small displays at a reader that stalls for 8 s", stallFigure},
	{"idle", "an agent that has nothing to do", idleFigure},
	{"start", "from exec to a served request", startFigure},
	{"size", "the binary", sizeFigure},
	{"languages", "the kernels of the languages, beside those that others would use, by the same agent", languagesFigure},
}

// cellFigure compares the agent with what one would use without it, and with its
// own bare channel to the same kernel: what the agent adds.
func cellFigure(e *env) ([]row, error) {
	const cells = 50
	a, err := e.startAgent()
	if err != nil {
		return nil, err
	}
	defer a.stop()
	if err := a.ready(e.ctx); err != nil {
		return nil, err
	}
	bare, err := e.startBare("python", "pass")
	if err != nil {
		return nil, err
	}
	defer bare.close()
	var jupyter [2]*peer
	for i, transport := range []string{"tcp", "ipc"} {
		if jupyter[i], err = e.startPeer(kernelPeer, transport); err != nil {
			return nil, err
		}
		defer jupyter[i].close()
	}
	d, err := dialDirect(a.socket)
	if err != nil {
		return nil, err
	}
	defer d.conn.Close()
	by := func(client http.Client) func() ([]float64, error) {
		b := *a
		b.client = client
		return func() (v []float64, err error) {
			for range cells {
				x, t, err := b.run(e.ctx, "pass")
				if err != nil || x.Status != api.StatusOK {
					return nil, fmt.Errorf("a cell ended as %s: %w", x.Status, err)
				}
				v = append(v, t)
			}
			return v, nil
		}
	}
	sides := []func() ([]float64, error){
		by(http.Client{Transport: d}),
		func() (v []float64, err error) {
			for range cells {
				r, err := bare.run("pass")
				if err != nil {
					return nil, err
				}
				v = append(v, r.Ms)
			}
			return v, nil
		},
		func() ([]float64, error) { return jupyter[0].cells(cells) },
		func() ([]float64, error) { return jupyter[1].cells(cells) },
		by(a.client),
	}
	m, err := inTurns(e.rounds, sides)
	if err != nil {
		return nil, err
	}
	return []row{
		{"cellard, HTTP over a Unix socket", ms(m[0]), ""},
		{"the same by net/http's client", ms(m[4]), fmt.Sprintf("of it the client %+.2f ms", m[4]-m[0])},
		{"bare channel to the same kernel", ms(m[1]), fmt.Sprintf("cellard %+.2f ms (aim: at most +1)", m[0]-m[1])},
		{"jupyter_client's blocking client, tcp", ms(m[2]), fmt.Sprintf("cellard %s of it (aim: at most 0.8)", times(m[0], m[2]))},
		{"jupyter_client's blocking client, ipc", ms(m[3]), fmt.Sprintf("cellard %s of it", times(m[0], m[3]))},
	}, nil
}

// inTurns has each side measure in every round, and returns their medians.
func inTurns(rounds int, sides []func() ([]float64, error)) ([]float64, error) {
	all := make([][]float64, len(sides))
	for round := -1; round < rounds; round++ { // the first warms up
		for i := range sides {
			i = (i + max(0, round)) % len(sides)
			v, err := sides[i]()
			if err != nil {
				return nil, err
			}
			if round >= 0 {
				all[i] = append(all[i], v...)
			}
		}
	}
	m := make([]float64, len(sides))
	for i, v := range all {
		m[i] = median(v)
	}
	return m, nil
}

// stdoutFigure compares the agent, which folds, keeps and spools what comes, with a
// client that only throws it away.
func stdoutFigure(e *env) ([]row, error) {
	const size = 100_000_000
	const code = "import sys\nfor _ in range(1000): _ = sys.stdout.write(('x' * 99 + '\\n') * 1000)"
	a, err := e.startAgent()
	if err != nil {
		return nil, err
	}
	defer a.stop()
	if err := a.ready(e.ctx); err != nil {
		return nil, err
	}
	bare, err := e.startBare("python", "pass")
	if err != nil {
		return nil, err
	}
	defer bare.close()
	jupyter, err := e.startPeer(kernelPeer, "tcp")
	if err != nil {
		return nil, err
	}
	defer jupyter.close()
	kept := int64(size)
	m, err := inTurns(min(3, e.rounds), []func() ([]float64, error){
		func() ([]float64, error) {
			x, t, err := a.run(e.ctx, code)
			if err != nil {
				return nil, err
			}
			if len(x.Overflow) != 1 || x.Overflow[0].Bytes != size || x.Status != api.StatusOK {
				return nil, fmt.Errorf("the agent: %s, overflow %+v", x.Status, x.Overflow)
			}
			kept = min(kept, x.Overflow[0].Bytes-max(x.Overflow[0].Dropped, x.LostBytes))
			return []float64{t}, nil
		},
		func() ([]float64, error) {
			r, err := bare.run(code)
			return []float64{r.Ms}, err
		},
		func() ([]float64, error) {
			r, err := jupyter.run(code, 0)
			return []float64{r.Ms}, err
		},
	})
	if err != nil {
		return nil, err
	}
	peak, err := memory(a.cmd.Process.Pid, "VmHWM")
	if err != nil {
		return nil, err
	}
	speed := func(ms float64) string { return fmt.Sprintf("%.0f MB/s", size/1e3/ms) }
	return []row{
		{"cellard, kept in a file", speed(m[0]), fmt.Sprintf("%d of %d bytes", kept, size)},
		{"bare channel that throws it away", speed(m[1]), fmt.Sprintf("cellard takes %s of its time (aim: 1)", times(m[0], m[1]))},
		{"jupyter_client's blocking client", speed(m[2]), fmt.Sprintf("cellard takes %s of its time", times(m[0], m[2]))},
		{"cellard's peak memory", mib(peak), "aim: at most 64 MiB"},
	}, nil
}

// pngFigure is a picture on its way from the kernel to a file.
func pngFigure(e *env) ([]row, error) {
	const prepare = `import random, struct, zlib
from IPython.display import Image, display
def chunk(t, d): return struct.pack('>I', len(d)) + t + d + struct.pack('>I', zlib.crc32(t + d))
raw = random.Random(1).randbytes(2600 * 7800)
raw = b''.join(b'\0' + raw[i * 7800:(i + 1) * 7800] for i in range(2600))
png = b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 2600, 2600, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(raw, 0)) + chunk(b'IEND', b'')`
	const code = "display(Image(png))"
	a, err := e.startAgent()
	if err != nil {
		return nil, err
	}
	defer a.stop()
	if err := a.ready(e.ctx); err != nil {
		return nil, err
	}
	bare, err := e.startBare("python", "pass")
	if err != nil {
		return nil, err
	}
	defer bare.close()
	if x, _, err := a.run(e.ctx, prepare); err != nil || x.Status != api.StatusOK {
		return nil, fmt.Errorf("making the picture: %+v %w", x.Error, err)
	}
	if _, err := bare.run(prepare); err != nil {
		return nil, err
	}
	var size int64
	m, err := inTurns(min(3, e.rounds), []func() ([]float64, error){
		func() ([]float64, error) {
			x, t, err := a.run(e.ctx, code)
			if err != nil {
				return nil, err
			}
			if len(x.Results) != 1 || x.Results[0].Refs["image/png"].Bytes < 20_000_000 {
				return nil, fmt.Errorf("the agent: %s, %d results", x.Status, len(x.Results))
			}
			size = x.Results[0].Refs["image/png"].Bytes
			return []float64{t}, nil
		},
		func() ([]float64, error) {
			r, err := bare.run(code)
			return []float64{r.Ms}, err
		},
	})
	if err != nil {
		return nil, err
	}
	peak, err := memory(a.cmd.Process.Pid, "VmHWM")
	if err != nil {
		return nil, err
	}
	return []row{
		{"cellard, to a ref", ms(m[0]), fmt.Sprintf("%d bytes", size)},
		{"bare channel that throws it away", ms(m[1]), fmt.Sprintf("cellard takes %s of its time", times(m[0], m[1]))},
		{"cellard's peak memory", mib(peak), "aim: at most 64 MiB"},
	}, nil
}

// stallFigure counts what arrives at all.
func stallFigure(e *env) ([]row, error) {
	const n, stall = 20_000, 8 * time.Second
	const code = "from IPython.display import display\nfor i in range(20000): display({'text/plain': str(i)}, raw=True)"
	a, err := e.startAgent()
	if err != nil {
		return nil, err
	}
	defer a.stop()
	if err := a.ready(e.ctx); err != nil {
		return nil, err
	}
	x, events, err := a.stalled(e.ctx, code, stall)
	if err != nil {
		return nil, err
	}
	a.stop()
	jupyter, err := e.startPeer(kernelPeer, "tcp")
	if err != nil {
		return nil, err
	}
	defer jupyter.close()
	r, err := jupyter.run(code, stall)
	if err != nil {
		return nil, err
	}
	lost := func(got int) string { return fmt.Sprintf("%d lost", n-got) }
	return []row{
		{"cellard, in the stream", lost(events), "aim: 0"},
		{"cellard, in the Execution", lost(len(x.Results)), fmt.Sprintf("status %s (aim: 0)", x.Status)},
		{"jupyter_client's blocking client", lost(r.Displays), ""},
	}, nil
}

// idleFigure has no peer that does the same; a Python process that holds a kernel
// by jupyter_client comes near.
func idleFigure(e *env) ([]row, error) {
	const watch = 10 * time.Second
	a, err := e.startAgent()
	if err != nil {
		return nil, err
	}
	defer a.stop()
	jupyter, err := e.startPeer(kernelPeer, "ipc")
	if err != nil {
		return nil, err
	}
	defer jupyter.close()
	look := func(what string, pid int, aim string) ([]row, error) {
		before, err := switches(pid)
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(watch):
		case <-e.ctx.Done():
			return nil, e.ctx.Err()
		}
		after, err := switches(pid)
		if err != nil {
			return nil, err
		}
		rss, err := memory(pid, "VmRSS")
		return []row{
			{what + ", memory", mib(rss), aim},
			{what + ", wake-ups", fmt.Sprintf("%.1f /s", float64(after-before)/watch.Seconds()), ""},
		}, err
	}
	rows, err := look("cellard, no kernel yet", a.cmd.Process.Pid, "aim: at most 15 MiB")
	if err != nil {
		return nil, err
	}
	if err := a.ready(e.ctx); err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second) // what follows a cell, such as keeping it, is over
	more, err := look("cellard, a kernel idle", a.cmd.Process.Pid, "aim: at most 15 MiB")
	if err != nil {
		return nil, err
	}
	peer, err := look("jupyter_client, a kernel idle", jupyter.cmd.Process.Pid, "")
	return append(append(rows, more...), peer...), err
}

func sizeFigure(e *env) ([]row, error) {
	fi, err := os.Stat(e.binary)
	if err != nil {
		return nil, err
	}
	return []row{{"cellard", fmt.Sprintf("%.1f MB", float64(fi.Size())/1e6), "aim: at most 16 MB"}}, nil
}
