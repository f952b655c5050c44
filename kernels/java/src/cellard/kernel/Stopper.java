package cellard.kernel;

import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * Stops what works for a cell, on a thread of its own: the checks in its bytecode throw
 * from the moment that it is marked; what waits is interrupted; and what runs in a
 * library, where no check stands, is stopped from outside, by the debugger's
 * interface, which the other process speaks.
 */
final class Stopper implements Runnable {
    /** When help from outside is asked for, and when the rest is left behind, in ms. */
    private static final long HELP = 40;
    private static final long GIVE_UP = 3000;
    /** From when on even what is loading a class is stopped. */
    private static final long HARD = 1000;
    /** How many threads are stopped from outside at once: each takes some calls. */
    private static final int AT_ONCE = 100;

    /** The cell that is being stopped; read where work has no sign of whose it is. */
    static volatile Cell stopping;

    /** For the debugger, which reads these by their names. */
    static volatile Thread[] stuck;
    static final Throwable ERROR = StopCell.INSTANCE;

    private static Stopper instance;

    private final Calls calls;
    private volatile Session session; // null while it is being made
    private final Queue<Cell> queue = new ArrayDeque<>();
    private Cell current;
    /** What could not be stopped; it stops when it comes to a check. */
    private final Set<Thread> left = Collections.newSetFromMap(new WeakHashMap<>());

    private Stopper(Calls calls) {
        this.calls = calls;
    }

    static void start(Calls calls) {
        instance = new Stopper(calls);
        Thread thread = new Thread(null, instance, "cellard stopper");
        thread.setDaemon(true);
        thread.setPriority(Thread.MAX_PRIORITY);
        thread.start();
    }

    /** Tells of the session, whose thread is stopped too. */
    static void stops(Session session) {
        instance.session = session;
    }

    /** Marks a cell, and has it stopped. It returns at once. */
    static void stop(Cell cell) {
        synchronized (instance) {
            if (!cell.dead) {
                stopping = cell;
                cell.dead = true;
                Guard.armed = true;
                instance.queue.add(cell);
                instance.notifyAll();
            }
        }
    }

    /** Waits until nothing more is done to a cell's threads. */
    static void await(Cell cell) {
        synchronized (instance) {
            while (instance.current == cell || instance.queue.contains(cell)) {
                try {
                    instance.wait();
                } catch (InterruptedException e) {
                    // nobody has reason to interrupt the session's thread
                }
            }
        }
    }

    @Override
    public void run() {
        while (true) {
            try {
                Cell cell = next();
                try {
                    if (cell != null) {
                        climb(cell);
                    }
                } finally {
                    settle();
                }
            } catch (Throwable e) { // no memory: there will be some when the cell has ended
                Thread.onSpinWait();
            }
        }
    }

    /** The next cell to stop; null when it is time to look whether any is left. */
    private synchronized Cell next() throws InterruptedException {
        if (queue.isEmpty()) {
            wait(Guard.armed ? 1000 : 0);
        }
        current = queue.poll();
        return current;
    }

    private void climb(Cell cell) throws Exception {
        if (cell.asked != 0) { // here, where it may wait, rather than where frames are read
            calls.done(cell.asked);
        }
        Session session = this.session;
        if (session == null) {
            return; // nothing runs yet, and the cell will not
        }
        long from = System.nanoTime();
        for (int round = 0; ; round++) {
            List<Thread> threads = Threads.busyOfDeadCells();
            threads.removeIf(left::contains);
            if (threads.isEmpty() && !session.works(cell)) {
                return;
            }
            long since = (System.nanoTime() - from) / 1_000_000;
            if (since > GIVE_UP) {
                left.addAll(threads);
                session.leave(cell);
                return;
            }
            for (Thread thread : threads) {
                thread.interrupt();
            }
            if (since >= HELP && !threads.isEmpty()) {
                stuck = some(threads, round);
                boolean hard = since > HARD;
                int tid = session.works(cell) ? session.nativeThread() : 0;
                calls.insist('K', frame -> frame.flag(hard).small(tid), 2000);
                stuck = null;
            }
            // Looking at stacks stops the whole machine, and a deep one takes a while.
            try {
                Thread.sleep(Math.min(100, 2 + round * round));
            } catch (InterruptedException e) {
                // a cell's doing: it only makes this quicker
            }
        }
    }

    /** As many threads as can be looked at in a moment, others each time; the cells' own first. */
    private static Thread[] some(List<Thread> threads, int round) {
        if (threads.size() > AT_ONCE) {
            Collections.rotate(threads, -(round * AT_ONCE % threads.size()));
            threads.sort(Comparator.comparing(thread -> !(thread instanceof CellThread)));
            threads = threads.subList(0, AT_ONCE);
        }
        return threads.toArray(new Thread[0]);
    }

    private void settle() {
        boolean left = Threads.hasDead();
        synchronized (this) {
            current = null;
            if (queue.isEmpty()) {
                Guard.armed = left;
                stopping = null;
            }
            notifyAll();
        }
    }
}
