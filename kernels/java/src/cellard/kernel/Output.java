package cellard.kernel;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Where what cells print and show goes: to the cell that the thread works for. */
final class Output {
    private final Wire wire;
    private volatile Cell running;

    Output(Wire wire) {
        this.wire = wire;
    }

    /** Says which cell runs: what no cell's thread prints is its. */
    void runs(Cell cell) {
        running = cell;
    }

    PrintStream stream(char type) {
        return new Unbuffered(new Stream(type));
    }

    /**
     * A PrintStream that keeps nothing back. The writers inside of PrintStream would keep
     * what a thread was stopped in printing, and print it with the next cell.
     */
    private final class Unbuffered extends PrintStream {
        private char high; // half of a character, whose other half comes with the next print
        private Cell highOf;

        Unbuffered(Stream stream) {
            super(stream, false, StandardCharsets.UTF_8);
        }

        private synchronized void text(String s) {
            if (s.isEmpty()) {
                return;
            }
            Cell cell = cell();
            if (high != 0 && highOf == cell) {
                s = high + s;
            }
            high = s.charAt(s.length() - 1);
            highOf = cell;
            if (Character.isHighSurrogate(high)) {
                s = s.substring(0, s.length() - 1);
            } else {
                high = 0;
            }
            byte[] bytes = s.getBytes(StandardCharsets.UTF_8);
            write(bytes, 0, bytes.length);
        }

        private void line(String s) {
            text(s + System.lineSeparator());
        }

        /** A writer around System.out that is closed would close it for all cells. */
        @Override
        public void close() {
            flush();
        }

        @Override
        public void print(boolean b) {
            text(String.valueOf(b));
        }

        @Override
        public void print(char c) {
            text(String.valueOf(c));
        }

        @Override
        public void print(int i) {
            text(String.valueOf(i));
        }

        @Override
        public void print(long l) {
            text(String.valueOf(l));
        }

        @Override
        public void print(float f) {
            text(String.valueOf(f));
        }

        @Override
        public void print(double d) {
            text(String.valueOf(d));
        }

        @Override
        public void print(char[] s) {
            text(String.valueOf(s));
        }

        @Override
        public void print(String s) {
            text(String.valueOf(s));
        }

        @Override
        public void print(Object o) {
            text(String.valueOf(String.valueOf(o))); // a toString may return null
        }

        @Override
        public void println() {
            line("");
        }

        @Override
        public void println(boolean b) {
            line(String.valueOf(b));
        }

        @Override
        public void println(char c) {
            line(String.valueOf(c));
        }

        @Override
        public void println(int i) {
            line(String.valueOf(i));
        }

        @Override
        public void println(long l) {
            line(String.valueOf(l));
        }

        @Override
        public void println(float f) {
            line(String.valueOf(f));
        }

        @Override
        public void println(double d) {
            line(String.valueOf(d));
        }

        @Override
        public void println(char[] s) {
            line(String.valueOf(s));
        }

        @Override
        public void println(String s) {
            line(String.valueOf(s));
        }

        @Override
        public void println(Object o) {
            line(String.valueOf(String.valueOf(o)));
        }
    }

    private Cell cell() {
        Cell cell = Threads.owner();
        if (cell == null) {
            cell = running;
        }
        return cell;
    }

    private final class Stream extends OutputStream {
        private final char type;
        private final Traces traces = new Traces();

        Stream(char type) {
            this.type = type;
        }

        @Override
        public void write(int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            Cell cell = cell();
            if (cell == null || length == 0) {
                return;
            }
            if (cell.dead) {
                throw StopCell.INSTANCE;
            }
            byte[] plain = traces.plain(bytes, offset, length);
            if (plain != null) {
                bytes = plain;
                offset = 0;
                length = plain.length;
            }
            wire.print(type, cell.id, bytes, offset, length);
        }
    }

    void note(Cell cell, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        wire.print('e', cell.id, bytes, 0, bytes.length);
    }

    void result(Cell cell, Values.Shown shown) throws IOException {
        wire.send(display('R', cell, shown, ""));
    }

    /** Shows for the cell of the current thread; update changes what the id named. */
    void display(Values.Shown shown, String id, boolean update) throws IOException {
        Cell cell = cell();
        if (cell != null) {
            wire.send(display(update ? 'U' : 'D', cell, shown, id));
        }
    }

    private static Wire.Builder display(char type, Cell cell, Values.Shown shown, String id) {
        Wire.Builder frame = new Wire.Builder(type).number(cell.id).text(id).small(shown.data.size());
        for (Map.Entry<String, String> e : shown.data.entrySet()) {
            frame.text(e.getKey()).flag(shown.json.contains(e.getKey())).text(e.getValue());
        }
        return frame;
    }

    void clear(boolean wait) throws IOException {
        Cell cell = cell();
        if (cell != null) {
            wire.send(new Wire.Builder('L').number(cell.id).flag(wait));
        }
    }

    /** The cell that the current thread works for; null for none. */
    Cell current() {
        return cell();
    }
}
