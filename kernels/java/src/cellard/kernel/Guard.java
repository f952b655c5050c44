package cellard.kernel;

/** What the bytecode of cells calls: see Instrument, which puts the calls there. */
public final class Guard {
    /** Tells that some cell which is to stop may still have a thread. */
    static volatile boolean armed;

    private Guard() {}

    /** Stands at method entries, before jumps back, and at the start of handlers. */
    public static void check() {
        if (armed) {
            Threads.endIfDead();
        }
    }

    /** Stands for System.exit: ends the cell, not the virtual machine. */
    public static void exit(int status) {
        Cell cell = Threads.owner();
        if (cell != null && !cell.dead) {
            cell.exit = status;
            Stopper.stop(cell);
        }
        throw StopCell.INSTANCE;
    }

    /** Stands for Runtime.exit and Runtime.halt. */
    public static void exit(Runtime runtime, int status) {
        if (runtime == null) {
            throw new NullPointerException();
        }
        exit(status);
    }
}
