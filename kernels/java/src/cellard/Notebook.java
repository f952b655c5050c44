package cellard;

import cellard.kernel.Show;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** What a cell can call without an import, beyond Java's own. */
public final class Notebook {
    private static final AtomicLong LAST = new AtomicLong();

    private Notebook() {}

    /**
     * Shows a value: an image as PNG, a list of records or maps as a table, a Path or a
     * File by its type, a Map whose keys are MIME types as the data that it holds.
     */
    public static void display(Object value) {
        Show.display(value, "", false);
    }

    /** Shows data of a MIME type: text, byte[] for a binary type, or a value for JSON. */
    public static void display(String mimeType, Object data) {
        Show.display(Map.of(mimeType, data), "", false);
    }

    /** Shows a value that can be changed later, by the handle's update. */
    public static DisplayHandle displayHandle(Object value) {
        DisplayHandle handle = new DisplayHandle("java-" + LAST.incrementAndGet());
        Show.display(value, handle.id, false);
        return handle;
    }

    /** Takes back what the cell has put out so far. */
    public static void clearOutput() {
        Show.clear(false);
    }

    /** Takes it back only when the next output comes, if wait is true. */
    public static void clearOutput(boolean wait) {
        Show.clear(wait);
    }

    /** What displayHandle showed. */
    public static final class DisplayHandle {
        private final String id;

        private DisplayHandle(String id) {
            this.id = id;
        }

        /** Shows another value in its place. */
        public void update(Object value) {
            Show.display(value, id, true);
        }
    }
}
