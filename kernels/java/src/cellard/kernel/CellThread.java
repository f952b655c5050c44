package cellard.kernel;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.SynchronousQueue;

/**
 * The thread that cells run on, one after another, so that what belongs to a thread
 * (its locals, the locks that it holds) lives as long as the session. One that could
 * not be stopped is left behind, and the next cell has a new one.
 */
final class CellThread extends Thread {
    /** In bytes; twice of what Java gives its main thread, for what a cell has below it. */
    private static final long STACK = 2 << 20;

    volatile Cell cell;
    /** The system's number for this thread; 0 until it is known, and where it is not. */
    volatile int tid;
    private volatile boolean left;
    private final SynchronousQueue<Task> tasks = new SynchronousQueue<>();

    /** A group of its own: a cell that interrupts or ends its group's means its own threads. */
    private static final ThreadGroup GROUP = new ThreadGroup("cells");

    CellThread(ClassLoader loader) {
        super(GROUP, null, "main", STACK);
        setContextClassLoader(loader);
        setDaemon(true);
        start();
    }

    /** Work for this thread, and what came of it. */
    private static final class Task {
        final Cell cell;
        final Callable<Object> work;
        Object value;
        Throwable error;
        boolean done;

        Task(Cell cell, Callable<Object> work) {
            this.cell = cell;
            this.work = work;
        }
    }

    /**
     * Runs work for a cell and waits for it. It throws what the work threw, and
     * StopCell when the thread was left behind, see leave.
     */
    Object run(Cell cell, Callable<Object> work) throws Throwable {
        Task task = new Task(cell, work);
        while (!give(task)) {
            // interrupted, by a cell that looks for threads: nobody else does that here
        }
        synchronized (this) {
            while (!task.done && !left) {
                try {
                    wait();
                } catch (InterruptedException e) {
                    // as above
                }
            }
        }
        if (!task.done) {
            throw StopCell.INSTANCE;
        }
        if (task.error != null) {
            throw task.error;
        }
        return task.value;
    }

    private boolean give(Task task) {
        try {
            tasks.put(task);
            return true;
        } catch (InterruptedException e) {
            return false;
        }
    }

    /** Gives up on the thread: run returns, and the thread ends when it can. */
    synchronized void leave() {
        left = true;
        notifyAll();
    }

    boolean isLeft() {
        return left;
    }

    @Override
    public void run() {
        try { // PID/task/TID
            tid = Integer.parseInt(Path.of("/proc/thread-self").toRealPath().getFileName().toString());
        } catch (IOException | RuntimeException e) {
            tid = 0;
        }
        while (!left) {
            Task task = null;
            try {
                task = tasks.take();
                cell = task.cell;
                Threads.OWNER.set(task.cell);
                task.value = task.work.call();
            } catch (Throwable e) { // anything that a cell throws, and a stop that comes late
                if (task == null) {
                    continue;
                }
                task.error = e;
            }
            finish(task);
        }
    }

    private void finish(Task task) {
        // The cell's end takes the interrupt and the stop that were meant for it along.
        while (true) {
            try {
                cell = null;
                Thread.interrupted();
                synchronized (this) {
                    task.done = true;
                    notifyAll();
                }
                return;
            } catch (Throwable e) { // a stop from outside that was under way: once more
                task.error = task.error == null ? e : task.error;
            }
        }
    }
}
