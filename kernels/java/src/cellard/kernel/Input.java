package cellard.kernel;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;

/** System.in: each line is asked of the front end, or refused at once where none can be. */
final class Input extends InputStream {
    private static final String REFUSED = "this cell was run without answers for input: it can't ask";

    private final Calls calls;
    private final Output output;
    private byte[] line = {};
    private int at;

    Input(Calls calls, Output output) {
        this.calls = calls;
        this.output = output;
    }

    @Override
    public synchronized int read() throws IOException {
        fill();
        return line[at++] & 0xff;
    }

    @Override
    public synchronized int read(byte[] bytes, int offset, int length) throws IOException {
        java.util.Objects.checkFromIndexSize(offset, length, bytes.length);
        if (length == 0) {
            return 0;
        }
        fill();
        int count = Math.min(length, line.length - at);
        System.arraycopy(line, at, bytes, offset, count);
        at += count;
        return count;
    }

    @Override
    public synchronized int available() {
        return line.length - at;
    }

    private void fill() throws IOException {
        if (at < line.length) {
            return;
        }
        Cell cell = output.current();
        if (cell == null || !cell.allowInput) {
            throw new cellard.StdinNotImplementedError(REFUSED);
        }
        Calls.Answer answer;
        try {
            answer = calls.ask('N', frame -> frame.number(cell.id).flag(false).text(""), 0);
        } catch (InterruptedException e) {
            if (cell.dead) {
                throw StopCell.INSTANCE;
            }
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted while waiting for input");
        }
        if (!answer.ok) {
            throw new cellard.StdinNotImplementedError(answer.value);
        }
        line = (answer.value + "\n").getBytes(StandardCharsets.UTF_8);
        at = 0;
    }
}
