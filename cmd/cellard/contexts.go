package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/cellard/cellard/internal/drawing"
	"github.com/cellard/cellard/protocol/api"
)

const contextsHelp = `
cellard contexts shows an agent's contexts, and does something to one of them.

Usage: cellard contexts [flags]                      list them
       cellard contexts [flags] create [ID]          make one: --language, --cwd, --env
       cellard contexts [flags] restart|interrupt|delete ID ...
       cellard contexts [flags] variables ID ...     what variables they hold
       cellard contexts [flags] notebook ID           what it has run, as a notebook on stdout`

var contextVerbs = []string{"list", "create", "restart", "interrupt", "delete", "variables", "notebook"}

// contexts is cellard contexts.
func contexts(args []string) int {
	fs := newFlags("contexts")
	call := newCallFlags(fs, false)
	var req api.ContextRequest
	fs.StringVar(&req.Language, "language", "", "`NAME` of the language, or of an installed kernelspec, of a context to create (default python)")
	fs.StringVar(&req.Cwd, "cwd", "", "`DIR` where a context to create starts, one of the agent's machine (default: its workspace)")
	envVar(fs, &req.Env, "`NAME=VALUE` for the environment of a context to create; may be repeated")
	asJSON := fs.Bool("json", false, "print the agent's answers, each as a line of JSON; of the list, each context")
	var words []string
	code, ok := parseMixed(fs, args, contextsHelp, func(arg string) error {
		words = append(words, arg)
		return nil
	})
	if !ok {
		return code
	}
	verb := "list"
	if len(words) > 0 {
		verb, words = words[0], words[1:]
	}
	if !slices.Contains(contextVerbs, verb) {
		fmt.Fprintf(os.Stderr, "cellard contexts: there is no %q; want %s\n", verb, strings.Join(contextVerbs, ", "))
		return exitUsage
	}
	if verb != "create" {
		for _, name := range fs.given() {
			if slices.Contains([]string{"language", "cwd", "env"}, name) {
				fmt.Fprintf(os.Stderr, "cellard contexts: %s is for create\n", dashed(name))
				return exitUsage
			}
		}
	}
	if verb == "create" && len(words) > 1 {
		fmt.Fprintln(os.Stderr, "cellard contexts: create takes one id, or none")
		return exitUsage
	}
	if verb != "create" && (verb == "list") != (len(words) == 0) {
		fmt.Fprintln(os.Stderr, "cellard contexts: restart, interrupt, delete, variables and notebook take ids, list takes none")
		return exitUsage
	}
	ctx := context.Background()
	// do returns what is said of it in words, and the agent's answer.
	var do func(c *agentCall, id string) (string, any, error)
	switch verb {
	case "list":
	case "create":
		words = append(words, "")[:1] // without an id the agent gives one
		do = func(c *agentCall, id string) (string, any, error) {
			req.ID = id
			x, err := c.CreateContext(ctx, req)
			return fmt.Sprintf("%s: created, %s in %s", x.ID, drawing.Text(x.Language), drawing.Text(x.Cwd)), x, err
		}
	case "restart":
		do = func(c *agentCall, id string) (string, any, error) {
			x, err := c.Restart(ctx, id)
			return fmt.Sprintf("restarted, generation %d", x.Generation), x, err
		}
	case "interrupt":
		do = func(c *agentCall, id string) (string, any, error) {
			yes, err := c.Interrupt(ctx, id)
			said := "interrupted"
			if !yes {
				said = "ran no cell"
			}
			return said, map[string]bool{"interrupted": yes}, err
		}
	case "delete":
		do = func(c *agentCall, id string) (string, any, error) {
			return "deleted", map[string]bool{"deleted": true}, c.DeleteContext(ctx, id)
		}
	case "variables":
		do = func(c *agentCall, id string) (string, any, error) {
			list, err := c.Variables(ctx, id)
			return variablesTable(list), list, err
		}
	case "notebook":
		if len(words) > 1 {
			fmt.Fprintln(os.Stderr, "cellard contexts: one notebook at a time")
			return exitUsage
		}
	}
	c, err := call.open(ctx)
	if err != nil {
		return fail("contexts", err)
	}
	defer c.Close()
	switch verb {
	case "list":
		return listContexts(ctx, c, *asJSON)
	case "notebook":
		nb, err := c.Notebook(ctx, words[0])
		if err == nil {
			_, err = os.Stdout.Write(nb)
		}
		if err != nil {
			return fail("contexts", err)
		}
		return exitOK
	}
	for _, id := range words {
		said, answer, err := do(c, id)
		if err != nil {
			return fail("contexts", err)
		}
		if *asJSON {
			if code := tellJSON("contexts", answer); code != exitOK {
				return code
			}
			continue
		}
		if verb != "create" {
			said = id + ": " + said
		}
		fmt.Println(said)
	}
	return exitOK
}

// variablesTable has a line for how many there are, and one for each that came.
func variablesTable(list api.VariableList) string {
	var b strings.Builder
	if list.Total == 1 {
		b.WriteString("1 variable")
	} else {
		fmt.Fprintf(&b, "%d variables", list.Total)
	}
	if more := list.Total - len(list.Data); more > 0 {
		fmt.Fprintf(&b, ", %d of them not shown", more)
	}
	if len(list.Data) == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tTYPE\tSIZE\tVALUE")
	for _, v := range list.Data {
		size := ""
		switch {
		case len(v.Shape) > 0:
			for i, n := range v.Shape {
				if i > 0 {
					size += " × "
				}
				size += strconv.FormatInt(n, 10)
			}
		case v.Size != nil:
			size = strconv.FormatInt(*v.Size, 10)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", drawing.Text(v.Name), drawing.Text(v.Type), size, drawing.Text(v.Preview))
	}
	_ = w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

func listContexts(ctx context.Context, c *agentCall, asJSON bool) int {
	list, err := c.Contexts(ctx)
	if err != nil {
		return fail("contexts", err)
	}
	if asJSON {
		for _, x := range list {
			if code := tellJSON("contexts", x); code != exitOK {
				return code
			}
		}
		return exitOK
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tLANGUAGE\tSTATE\tCELLS\tGENERATION\tPROCESS\tSTARTED\tKERNEL\tDIRECTORY")
	for _, x := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s %s\t%s\n", x.ID, x.Language, x.State, x.ExecutionCount, x.Generation, x.ProcessID,
			x.StartedAt.Local().Format("2006-01-02 15:04:05"), drawing.Text(x.Kernel.Name), drawing.Text(x.Kernel.Version), drawing.Text(x.Cwd))
	}
	_ = w.Flush()
	return exitOK
}
