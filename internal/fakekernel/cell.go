package fakekernel

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A cell is lines of commands, done one after the other until one fails:
//
//	print TEXT            a line on stdout; eprint on stderr
//	write TEXT            on stdout, without a newline, with Go's escapes (\r, \x1b, …)
//	raw TEXT              a line on the process's own stdout, past the protocol
//	result TEXT           execute_result
//	display N             N times display_data
//	bundle JSON           display_data of that MIME bundle
//	display-id ID TEXT    display_data with a display_id; update-id changes it
//	clear [wait]          clear_output
//	error NAME VALUE      the cell fails
//	sleep MS              an interrupt ends it, and the cell: KeyboardInterrupt
//	input PROMPT          asks on stdin and prints the answer; input-hidden asks for a password
//	set NAME VALUE        the kernel's state; get NAME is its result, or NameError
//	env NAME              result: a variable of the environment
//	pid                   result: the process's id
//	spawn SECONDS         starts a child that sleeps; result: its id
//	sh SCRIPT             a shell that has the process's own stdout and stderr; waits for it
//	exit CODE             the process exits at once
//
// and of what misbehaves, in quirks.go.
type cell struct {
	*kernel
	r       request
	request executeRequest
	quirks  map[string]string

	mu          sync.Mutex
	interrupted chan struct{} // closed by the first interrupt
	deaf        bool
}

type executeRequest struct {
	Code       string `json:"code"`
	Silent     bool   `json:"silent"`
	AllowStdin bool   `json:"allow_stdin"`
}

// A failure is what ends a cell early.
type failure struct{ name, value string }

func (k *kernel) execute(r request) {
	c := &cell{kernel: k, r: r, interrupted: make(chan struct{}), quirks: make(map[string]string)}
	if err := json.Unmarshal(r.content, &c.request); err != nil {
		fmt.Fprintln(os.Stderr, "fakekernel: execute_request:", err)
		return
	}
	lines := strings.Split(c.request.Code, "\n")
	for _, line := range lines {
		if name, arg, _ := strings.Cut(line, " "); strings.HasPrefix(name, "!") {
			c.quirks[name] = arg
		}
	}

	c.dieIf("!die-before-busy")
	k.setCurrent(c) // before busy, at which a client may interrupt
	defer k.setCurrent(nil)
	if !c.has("!no-busy") {
		c.publish(r.message, "status", status("busy"))
	}
	c.dieIf("!die-after-busy")
	if !c.request.Silent {
		k.count++
		c.output("execute_input", map[string]any{"code": c.request.Code, "execution_count": k.count})
	}
	failed := c.run(lines)
	c.dieIf("!die-before-idle")

	answer := map[string]any{
		"status": "ok", "execution_count": k.count, "user_expressions": struct{}{}, "payload": []any{},
	}
	if failed != nil {
		e := map[string]any{
			"ename": failed.name, "evalue": failed.value, "traceback": []string{"Traceback:", failed.name + ": " + failed.value},
		}
		c.output("error", e)
		e["status"], e["execution_count"] = "error", k.count
		answer = e
	}
	c.end(answer)
}

func (c *cell) run(lines []string) *failure {
	for _, line := range lines {
		select {
		case <-c.interrupted:
			return &failure{"KeyboardInterrupt", ""}
		default:
		}
		name, arg, _ := strings.Cut(line, " ")
		var f *failure
		if strings.HasPrefix(name, "!") {
			f = c.misbehave(name, arg)
		} else {
			f = c.command(name, arg)
		}
		if f != nil {
			return f
		}
	}
	return nil
}

func (c *cell) command(name, arg string) *failure {
	first, rest, _ := strings.Cut(arg, " ")
	switch name {
	case "":
	case "print":
		c.stream("stdout", arg+"\n")
	case "eprint":
		c.stream("stderr", arg+"\n")
	case "write":
		text, err := strconv.Unquote(`"` + arg + `"`)
		if err != nil {
			return &failure{"SyntaxError", "write: " + err.Error()}
		}
		c.stream("stdout", text)
	case "raw":
		fmt.Println(arg)
	case "result":
		c.result(arg)
	case "display":
		n, err := strconv.Atoi(arg)
		if err != nil {
			return &failure{"SyntaxError", "display: " + err.Error()}
		}
		for i := range n {
			c.display("display_data", fmt.Sprintf("display %d", i+1), nil)
		}
	case "bundle":
		if !json.Valid([]byte(arg)) {
			return &failure{"SyntaxError", "bundle: not JSON"}
		}
		c.output("display_data", map[string]any{
			"data": json.RawMessage(arg), "metadata": struct{}{}, "transient": struct{}{},
		})
	case "display-id":
		c.display("display_data", rest, map[string]any{"display_id": first})
	case "update-id":
		c.display("update_display_data", rest, map[string]any{"display_id": first})
	case "clear":
		c.output("clear_output", map[string]any{"wait": arg == "wait"})
	case "error":
		return &failure{first, rest}
	case "sleep":
		ms, err := strconv.Atoi(arg)
		if err != nil {
			return &failure{"SyntaxError", "sleep: " + err.Error()}
		}
		select {
		case <-c.interrupted:
			return &failure{"KeyboardInterrupt", ""}
		case <-time.After(time.Duration(ms) * time.Millisecond):
		}
	case "input", "input-hidden":
		return c.input(arg, name == "input-hidden")
	case "set":
		c.vars[first] = rest
	case "get":
		v, ok := c.vars[arg]
		if !ok {
			return &failure{"NameError", arg}
		}
		c.result(v)
	case "env":
		c.result(os.Getenv(arg))
	case "pid":
		c.result(strconv.Itoa(os.Getpid()))
	case "spawn":
		cmd := exec.Command("sleep", arg)
		if err := cmd.Start(); err != nil {
			return &failure{"OSError", err.Error()}
		}
		go cmd.Wait()
		c.result(strconv.Itoa(cmd.Process.Pid))
	case "sh":
		cmd := exec.Command("sh", "-c", arg)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return &failure{"OSError", err.Error()}
		}
	case "exit":
		code, err := strconv.Atoi(arg)
		if err != nil {
			return &failure{"SyntaxError", "exit: " + err.Error()}
		}
		os.Exit(code)
	default:
		return &failure{"SyntaxError", name}
	}
	return nil
}

func (c *cell) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.interrupted:
	default:
		if !c.deaf {
			close(c.interrupted)
		}
	}
}

// input asks on the stdin channel of the client that sent the cell: the one whose
// identity is the same there.
func (c *cell) input(prompt string, password bool) *failure {
	if !c.request.AllowStdin {
		return &failure{"StdinNotImplementedError", "this client can't be asked"}
	}
	client := c.stdin.byIdentity(c.r.conn.identity)
	if client == nil {
		return &failure{"StdinNotImplementedError", "the client's stdin has another identity"}
	}
	m := c.newMessage("input_request", c.r.message, map[string]any{"prompt": prompt, "password": password})
	client.write(marshal(c.frames(m)))
	select {
	case <-c.interrupted:
		return &failure{"KeyboardInterrupt", ""}
	case answer := <-c.replies:
		var content struct {
			Value string `json:"value"`
		}
		if err := json.Unmarshal(answer.content, &content); err != nil {
			return &failure{"ValueError", err.Error()}
		}
		c.stream("stdout", content.Value+"\n")
	}
	return nil
}

// output publishes what the cell gives, which a silent one doesn't.
func (c *cell) output(msgType string, content any) {
	if !c.request.Silent || msgType == "stream" || msgType == "error" {
		c.publish(c.r.message, msgType, content)
	}
}

func (c *cell) stream(name, text string) {
	c.output("stream", map[string]any{"name": name, "text": text})
}

func (c *cell) result(text string) {
	c.output("execute_result", map[string]any{
		"data": map[string]any{"text/plain": text}, "metadata": struct{}{}, "execution_count": c.count,
	})
}

func (c *cell) display(msgType, text string, transient map[string]any) {
	if transient == nil {
		transient = map[string]any{}
	}
	c.output(msgType, map[string]any{
		"data": map[string]any{"text/plain": text}, "metadata": struct{}{}, "transient": transient,
	})
}
