package cellard;

/** Input was asked for in a cell that nobody can be asked in. */
public final class StdinNotImplementedError extends RuntimeException {
    private static final long serialVersionUID = 1;

    public StdinNotImplementedError(String message) {
        super(message);
    }
}
