package cellard.kernel;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Map;

/** What cellard.Notebook does, on the kernel's side. */
public final class Show {
    private Show() {}

    /** Shows a value: a file by its type, a map by MIME types as what it holds. */
    public static void display(Object value, String id, boolean update) {
        try {
            if (value instanceof Path || value instanceof File) {
                file(value instanceof Path ? (Path) value : ((File) value).toPath(), id, update);
                return;
            }
            Values.Shown shown = Values.isBundle(value) ? Values.bundle((Map<?, ?>) value) : plain(value);
            Main.output().display(shown, id, update);
        } catch (IOException e) {
            Show.<RuntimeException>raise(e);
        }
    }

    /** Throws what need not be declared: a cell may throw all, and a lambda in it nothing. */
    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void raise(Throwable e) throws T {
        throw (T) e;
    }

    private static Values.Shown plain(Object value) {
        return value == null ? Values.nothing() : Values.show(value);
    }

    /** The other process reads the file: it knows the types, and the limits. */
    private static void file(Path path, String id, boolean update) throws IOException {
        Cell cell = Main.output().current();
        if (cell == null) {
            return;
        }
        Calls.Answer answer;
        try {
            String name = path.toString();
            String absolute = path.toAbsolutePath().toString();
            answer = Main.calls().ask('F', f -> f.number(cell.id).text(name).text(absolute).text(id).flag(update), 0);
        } catch (InterruptedException e) {
            if (cell.dead) {
                throw StopCell.INSTANCE;
            }
            Thread.currentThread().interrupt();
            return;
        }
        if (!answer.ok) {
            throw java.nio.file.Files.exists(path) ? new IOException(answer.value)
                    : new NoSuchFileException(path.toString());
        }
    }

    public static void clear(boolean wait) {
        try {
            Main.output().clear(wait);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
