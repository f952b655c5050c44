package cellard.kernel;

/** One execution: what is true of it for every thread that it started. */
final class Cell {
    final long id;
    final int count;
    final boolean silent;
    final boolean allowInput;

    /** Set once, when the cell is to end: each of its threads stops at its next check. */
    volatile boolean dead;
    /** The call to answer once it is marked; 0 for none. */
    volatile long asked;
    /** What System.exit was called with; null if it was not. */
    volatile Integer exit;

    Cell(long id, int count, boolean silent, boolean allowInput) {
        this.id = id;
        this.count = count;
        this.silent = silent;
        this.allowInput = allowInput;
    }
}
