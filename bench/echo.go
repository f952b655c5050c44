package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/cellard/cellard/protocol/zmtp"
)

// echoFigure compares three ZeroMQ clients at the same peer.
func echoFigure(e *env) ([]row, error) {
	const trips = 1000
	message := [][]byte{{}, make([]byte, 100)}
	socket := filepath.Join(e.dir, "echo")
	server, err := e.startPeer(echoPeer, "serve", "ipc://"+socket)
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.cmd.Process.Kill(); server.close() }()

	own, err := zmtp.Dial(e.ctx, "unix", socket, zmtp.Dealer, zmtp.Options{})
	if err != nil {
		return nil, err
	}
	defer own.Close()
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	foreign := zmq4.NewDealer(ctx)
	defer foreign.Close()
	if err := foreign.Dial("ipc://" + socket); err != nil {
		return nil, err
	}
	python, err := e.startPeer(echoPeer, "client", "ipc://"+socket)
	if err != nil {
		return nil, err
	}
	defer python.close()

	repeat := func(trip func() error) func() ([]float64, error) {
		return func() (v []float64, err error) {
			for range trips {
				begin := time.Now()
				if err := trip(); err != nil {
					return nil, err
				}
				v = append(v, float64(time.Since(begin))/1e3)
			}
			return v, nil
		}
	}
	m, err := inTurns(e.rounds, []func() ([]float64, error){
		repeat(func() error {
			if err := own.Send(message...); err != nil {
				return err
			}
			frames, err := own.Recv()
			for _, f := range frames {
				f.Close()
			}
			return err
		}),
		repeat(func() error {
			err := foreign.SendMulti(zmq4.NewMsgFrom(message...))
			_, err2 := foreign.Recv()
			return errors.Join(err, err2)
		}),
		func() (v []float64, err error) { return v, python.ask(trips, &v) },
	})
	if err != nil {
		return nil, err
	}
	us := func(v float64) string { return fmt.Sprintf("%.0f µs", v) }
	return []row{
		{"protocol/zmtp", us(m[0]), ""},
		{"go-zeromq/zmq4", us(m[1]), fmt.Sprintf("zmtp %s of it", times(m[0], m[1]))},
		{"pyzmq", us(m[2]), fmt.Sprintf("zmtp %s of it", times(m[0], m[2]))},
	}, nil
}
