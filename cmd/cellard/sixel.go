package main

import (
	"bytes"
	"image"
	"image/draw"
	"image/png"
	"io"
	"os"

	"github.com/mattn/go-sixel"
	"golang.org/x/sys/unix"
)

// maxPixels bounds a picture that is drawn as sixels, for which it is decoded: a few bytes
// of PNG can stand for one of any size.
const maxPixels = 8 << 20

// sixels draws a PNG as DEC's sixels, of 255 colours, in the terminal's width where that
// is known: what is wider would be cut off.
func sixels(w io.Writer, mimeType string, b []byte) bool {
	return drawSixels(w, mimeType, b, terminalPixels())
}

func drawSixels(w io.Writer, mimeType string, b []byte, width int) bool {
	if mimeType != "image/png" {
		return false
	}
	c, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil || c.Width <= 0 || c.Height <= 0 || c.Width > maxPixels/c.Height {
		return false
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return false
	}
	// On white: a chart with a background that can be seen through has black text.
	flat := image.NewRGBA(image.Rect(0, 0, c.Width, c.Height))
	draw.Draw(flat, flat.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Bounds(), img, img.Bounds().Min, draw.Over)
	if width > 0 && c.Width > width {
		flat = shrink(flat, (c.Width+width-1)/width)
	}
	var out bytes.Buffer // nothing of a picture that can't be drawn
	if err := sixel.NewEncoder(&out).Encode(flat); err != nil {
		return false
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err == nil
}

// shrink makes one pixel, their mean, of each n by n.
func shrink(from *image.RGBA, n int) *image.RGBA {
	size := from.Bounds().Size()
	to := image.NewRGBA(image.Rect(0, 0, (size.X+n-1)/n, (size.Y+n-1)/n))
	for y := range to.Rect.Dy() {
		for x := range to.Rect.Dx() {
			var sum [4]int
			count := 0
			for fy := y * n; fy < min((y+1)*n, size.Y); fy++ {
				for fx := x * n; fx < min((x+1)*n, size.X); fx++ {
					p := from.Pix[from.PixOffset(fx, fy):]
					for i := range sum {
						sum[i] += int(p[i])
					}
					count++
				}
			}
			p := to.Pix[to.PixOffset(x, y):]
			for i := range sum {
				p[i] = uint8(sum[i] / count)
			}
		}
	}
	return to
}

// terminalPixels is stdout's width in pixels; 0 where the terminal doesn't tell.
func terminalPixels() int {
	w, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(w.Xpixel)
}
