package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"time"
)

//go:embed peers/kernel.py
var kernelPeer string

//go:embed peers/echo.py
var echoPeer string

// peer is a Python program that takes a line and answers with one.
type peer struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

// startPeer starts a program and waits for its first line; close ends it.
func (e *env) startPeer(program string, args ...string) (*peer, error) {
	p := &peer{cmd: exec.CommandContext(e.ctx, e.python, append([]string{"-c", program}, args...)...)}
	p.cmd.Dir = e.dir
	p.cmd.Stderr = &p.stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	var none struct{}
	if err := p.read(&none); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *peer) read(answer any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("a Python peer: %w\n%s", err, p.stderr.String())
	}
	return json.Unmarshal(line, answer)
}

func (p *peer) ask(question, answer any) error {
	b, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return err
	}
	return p.read(answer)
}

// close ends the program: by the end of its input or, past a while, by force.
func (p *peer) close() {
	_ = p.in.Close()
	kill := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	_ = p.cmd.Wait()
}

// kernelRun is what kernel.py tells of a cell.
type kernelRun struct {
	Ms       float64 `json:"ms"`
	Displays int     `json:"displays"`
	Bytes    int64   `json:"bytes"`
}

func (p *peer) run(code string, stall time.Duration) (r kernelRun, err error) {
	err = p.ask(map[string]any{"do": "run", "code": code, "stall": stall.Seconds()}, &r)
	return r, err
}

// cells runs n times pass and returns the milliseconds of each.
func (p *peer) cells(n int) ([]float64, error) {
	var r struct {
		Ms []float64 `json:"ms"`
	}
	err := p.ask(map[string]any{"do": "cells", "n": n}, &r)
	return r.Ms, err
}
