package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/mattn/go-sixel"
)

func pngOf(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// halves is red on its left, and on its right what can be seen through.
func halves(w, h int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w / 2 {
			img.Set(x, y, color.NRGBA{200, 0, 0, 255})
		}
	}
	return img
}

func near(c color.Color, r, g, b uint32) bool {
	cr, cg, cb, _ := c.RGBA()
	far := func(x, y uint32) bool { return max(x>>8, y)-min(x>>8, y) > 4 } // sixel's colours are percents
	return !far(cr, r) && !far(cg, g) && !far(cb, b)
}

// What is drawn, a decoder of sixels shows as the picture that it was.
func TestSixels(t *testing.T) {
	for _, c := range []struct {
		w, h, width int // of the picture, and of the terminal
		want        image.Point
	}{
		{40, 24, 0, image.Pt(40, 24)},
		{40, 24, 40, image.Pt(40, 24)},
		{41, 25, 20, image.Pt(14, 9)},
		{2, 1, 1000, image.Pt(2, 1)},
	} {
		var b bytes.Buffer
		if !drawSixels(&b, "image/png", pngOf(t, halves(c.w, c.h)), c.width) {
			t.Errorf("%+v is not drawn", c)
			continue
		}
		if s := b.String(); !strings.HasPrefix(s, "\x1bP") || !strings.HasSuffix(s, "\x1b\\\n") {
			t.Errorf("%.20q … %.20q", s, s[max(0, len(s)-20):])
		}
		var got image.Image
		if err := sixel.NewDecoder(&b).Decode(&got); err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		// Sixels come in rows of six.
		if size := got.Bounds().Size(); size.X != c.want.X || size.Y < c.want.Y || size.Y >= c.want.Y+6 {
			t.Errorf("%+v is drawn as %v", c, size)
		}
		if !near(got.At(0, 0), 200, 0, 0) || !near(got.At(c.want.X-1, c.want.Y-1), 255, 255, 255) {
			t.Errorf("%+v: %v, %v", c, got.At(0, 0), got.At(c.want.X-1, c.want.Y-1))
		}
	}
}

// Nothing is written of what is no picture, or of one that would take too much memory.
func TestSixelsRefuses(t *testing.T) {
	good := pngOf(t, halves(10, 10))
	huge := bytes.Clone(good)
	copy(huge[16:24], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // IHDR's width and height; its checksum is then wrong too
	tall := pngOf(t, image.NewGray(image.Rect(0, 0, 1, maxPixels+1)))
	for name, c := range map[string]struct {
		mimeType string
		b        []byte
	}{
		"another type": {"image/jpeg", good}, "no PNG": {"image/png", []byte("GIF89a")}, "nothing": {"image/png", nil},
		"half of one": {"image/png", good[:len(good)/2]}, "a header alone": {"image/png", good[:33]},
		"a huge header": {"image/png", huge}, "too tall": {"image/png", tall},
	} {
		var b bytes.Buffer
		if drawSixels(&b, c.mimeType, c.b, 100) || b.Len() > 0 {
			t.Errorf("%s is drawn: %d bytes", name, b.Len())
		}
	}
}

// In a terminal that can, by its name.
func TestSixelTerminals(t *testing.T) {
	for env, want := range map[string]bool{"TERM=foot": true, "TERM=foot-extra": true, "TERM=mlterm": true, "TERM=contour": true,
		"KONSOLE_VERSION=220401": true, "KONSOLE_VERSION=211200": false, "KONSOLE_VERSION=x": false, "TERM=football": false, "TERM=xterm-256color": false} {
		k, v, _ := strings.Cut(env, "=")
		if got := terminalGraphics(func(n string) string { return map[string]string{k: v}[n] }); (got != nil) != want {
			t.Errorf("%s: %v", env, got != nil)
		}
	}
	text := base64.StdEncoding.EncodeToString(pngOf(t, halves(30, 12)))
	x := startTerminal(t, append(terminalEnv(t), "TERM=foot"), "run", "-c", "from IPython.display import display\ndisplay({'image/png': '"+text+"'}, raw=True)")
	if code := x.end(); code != 0 {
		t.Errorf("code %d", code)
	}
	<-x.read
	if !regexp.MustCompile(`\x1bP[0-9;]*q[^\x1b]+\x1b\\`).MatchString(x.log.String()) {
		t.Errorf("no sixels in %.200q", x.log.String())
	}
}
