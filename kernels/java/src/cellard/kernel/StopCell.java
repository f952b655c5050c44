package cellard.kernel;

/**
 * Ends the threads of a cell that is to stop. An Error, so that code which catches
 * Exception lets it pass; handlers that are wider throw it on, see Instrument.
 */
public final class StopCell extends Error {
    private static final long serialVersionUID = 1;

    /** The only one: it has no state, and making one must not need memory. */
    static final StopCell INSTANCE = new StopCell();

    private StopCell() {
        super("the cell was stopped", null, false, false);
    }
}
