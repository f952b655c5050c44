package cellard.kernel;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/** Questions to the process that started this one, each answered by a frame 'A'. */
final class Calls {
    /** How long, in ms, a process waits for a reader that does not take what was put out before. */
    private static final long SETTLE = 10_000;

    private final Wire wire;
    private final Map<Long, Answer> waiting = new HashMap<>();
    private long last;

    Calls(Wire wire) {
        this.wire = wire;
    }

    /** What came back: a value, or why there is none. */
    static final class Answer {
        boolean ok;
        String value;
    }

    interface Fields {
        void add(Wire.Builder frame);
    }

    /**
     * Asks, and waits for the answer: at most so many milliseconds, 0 for as long as it
     * takes. Null: none came.
     */
    Answer ask(char type, Fields fields, long timeout) throws IOException, InterruptedException {
        return ask(type, fields, timeout, true);
    }

    /** Asks for the kernel itself: a cell that interrupts the kernel's threads keeps nothing from it. */
    Answer insist(char type, Fields fields, long timeout) throws IOException {
        try {
            return ask(type, fields, timeout, false);
        } catch (InterruptedException e) {
            throw new AssertionError(e); // they are let pass
        }
    }

    /**
     * Returns when all that was put out before is handed on. What a process then writes to
     * the descriptors comes by another way than what is put out here, and comes after it.
     */
    void settle(Cell cell) {
        long end = System.nanoTime() + SETTLE * 1_000_000;
        boolean interrupted = Thread.interrupted();
        try {
            for (long left = SETTLE; left > 0; left = (end - System.nanoTime()) / 1_000_000) {
                if (cell.dead) {
                    throw StopCell.INSTANCE;
                }
                try {
                    ask('W', frame -> {}, left);
                    return;
                } catch (InterruptedException e) {
                    interrupted = true; // the cell's stop, or what the process's start is to see
                }
            }
        } catch (IOException e) {
            // nobody is left to read
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private Answer ask(char type, Fields fields, long timeout, boolean interruptible)
            throws IOException, InterruptedException {
        Answer answer = new Answer();
        long id;
        synchronized (waiting) {
            id = ++last;
            waiting.put(id, answer);
        }
        try {
            Wire.Builder frame = new Wire.Builder(type).number(id);
            fields.add(frame);
            wire.send(frame);
            long end = System.nanoTime() + timeout * 1_000_000;
            synchronized (waiting) {
                while (answer.value == null) {
                    long left = timeout == 0 ? 0 : (end - System.nanoTime()) / 1_000_000;
                    if (timeout != 0 && left <= 0) {
                        return null;
                    }
                    try {
                        waiting.wait(left);
                    } catch (InterruptedException e) {
                        if (interruptible) {
                            throw e;
                        }
                    }
                }
            }
            return answer;
        } finally {
            synchronized (waiting) {
                waiting.remove(id);
            }
        }
    }

    /** Answers a call of the other process's that asks for nothing. */
    void done(long call) throws IOException {
        wire.send(new Wire.Builder('B').number(call));
    }

    void answer(long id, boolean ok, String value) {
        synchronized (waiting) {
            Answer answer = waiting.get(id);
            if (answer != null) {
                answer.ok = ok;
                answer.value = value;
                waiting.notifyAll();
            }
        }
    }
}
