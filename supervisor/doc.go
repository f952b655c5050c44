// Package supervisor is what is alive: the contexts, the kernels behind them, the
// cells that they run, and the processes that all of it comes down to.
//
// Begin with Manager (manager.go): NewManager, Run (run.go), CreateContext (contexts.go),
// Shutdown. There is one
// in a process.
//
// # The way of a cell
//
//  1. Manager.Run checks the request and finds the context, or makes a language's own.
//     An idempotency key that is known leads to its execution and nowhere else.
//  2. The execution is made, is known by its id, and goes into the context's queue.
//     Run returns here: whoever wants the outcome follows the execution.
//  3. The context's goroutine (session.loop, session.go) takes the next cell when none
//     runs (next). Where there is no kernel it starts one first (kernel.go). ifGeneration
//     is looked at a second time.
//  4. send (cell.go) drains what was written while no cell ran, and sends the
//     execute_request. From here to its end the cell is session.cur.
//  5. Messages come to onMessage and are matched by the id of their parent alone: the
//     running cell's, a finished cell's (late output, which goes to that one; output.go), an answer
//     to a question of the agent's own. All else is counted and dropped. What the
//     processes write past the protocol comes through a rawpipe.Pair.
//  6. The deadline counts from busy, or from 5 s after the send. At it, at an interrupt, or
//     for want of an answer to input(), the ladder is climbed (stopCell, climb), whose
//     end is the kill (ladder.go).
//  7. The cell is done when reply and idle have come, in either order (finish). Where
//     one stays away, a question sent after it tells whether it still can come
//     (askAfter).
//  8. Or the kernel goes first: its process ends, or a channel does (kernelGone, gone.go). All that
//     it had sent is taken, then the cell is lost, and those that wait end without having
//     run.
//  9. What follows from the end is in place before the end is told (session.end): the
//     context's state, the queue, the key. The execution is then kept for a while
//     (executions.go).
//
// # Who owns what, and who stops it
//
// The Manager owns the sessions, the executions that are kept, the store, the spawner
// and the keeper. Shutdown ends the sessions, all at once, then the spawner, the keeper and
// the store; Close frees the executions, which may still be read in between.
//
// A session (one for each context) has one goroutine, which owns the kernel, the running
// cell and all of the session's fields that mu does not guard. Others hand it work by
// do. It ends after close, when the kernel has gone, and then closes gone: the context's
// id is free from that moment. Nothing in it waits for a client.
//
// A start of a kernel has a goroutine of its own, so that a context can be deleted
// meanwhile; it ends when its context does, and leaves nothing behind if it fails.
//
// A kernel is a Process, a jupyter.Client and a private directory. It is never repaired:
// at the first sign of its end killTree ends all processes that came from it, and close
// frees the rest.
//
// The spawner (spawn.go) has the thread that starts all processes, since Pdeathsig
// follows the thread, and reaps orphans, for the agent is their subreaper. A Process is
// waited for by its own goroutine and by nobody else. Where that can be had it is in a
// control group of its own (internal/cgroup), which has all that comes from it; the Manager
// owns the tree of them, the Process its group.
//
// The keeper (keeper.go) is a process that outlives an agent that was killed, to end what
// Pdeathsig does not reach.
//
// # Locks
//
// Manager.creating, then Manager.mu, then session.mu or an execution's own lock. A
// session's goroutine never takes creating, and no lock is held over do.
package supervisor
