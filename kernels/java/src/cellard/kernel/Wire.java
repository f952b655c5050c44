package cellard.kernel;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * Frames to and from the process that started this one: a length of four bytes, a
 * type of one, then the fields; integers are big-endian, a string is a length and its
 * UTF-8. wire.go is the other end, and says what each type holds.
 */
final class Wire {
    /** What a frame may hold, in bytes; the other end refuses more. */
    static final int MAX = 64 << 20;
    /** What one frame of text holds at most. */
    private static final int TEXT = 64 << 10;

    private final DataInputStream in;
    private final OutputStream out;
    private final Object lock = new Object();

    Wire(InputStream in, OutputStream out) {
        this.in = new DataInputStream(in);
        this.out = out;
    }

    /** A frame that came. */
    static final class Frame {
        final char type;
        private final DataInputStream fields;

        Frame(char type, byte[] payload) {
            this.type = type;
            this.fields = new DataInputStream(new java.io.ByteArrayInputStream(payload));
        }

        long number() throws IOException {
            return fields.readLong();
        }

        int small() throws IOException {
            return fields.readInt();
        }

        boolean flag() throws IOException {
            return fields.readByte() != 0;
        }

        String text() throws IOException {
            byte[] bytes = new byte[fields.readInt()];
            fields.readFully(bytes);
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }

    /** A frame to send. */
    static final class Builder {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(256);
        private final DataOutputStream fields = new DataOutputStream(bytes);

        Builder(char type) {
            small(0); // the length
            flag(type);
        }

        private void flag(int value) {
            bytes.write(value);
        }

        Builder flag(boolean value) {
            flag(value ? 1 : 0);
            return this;
        }

        Builder number(long value) {
            try {
                fields.writeLong(value);
            } catch (IOException e) {
                throw new AssertionError(e); // it is memory
            }
            return this;
        }

        Builder small(int value) {
            try {
                fields.writeInt(value);
            } catch (IOException e) {
                throw new AssertionError(e);
            }
            return this;
        }

        Builder text(String value) {
            return raw(value.getBytes(StandardCharsets.UTF_8));
        }

        Builder raw(byte[] value) {
            if (value.length > MAX - bytes.size()) {
                throw new IllegalArgumentException("what is shown holds more than " + (MAX >> 20) + " MB: write it to a file");
            }
            small(value.length);
            bytes.write(value, 0, value.length);
            return this;
        }
    }

    /** The next frame; null when the other end is gone. */
    Frame receive() throws IOException {
        int length;
        try {
            length = in.readInt();
        } catch (EOFException e) {
            return null;
        }
        if (length < 1 || length > MAX) {
            throw new IOException("a frame of " + length + " bytes");
        }
        byte[] payload = new byte[length];
        in.readFully(payload);
        return new Frame((char) payload[0], java.util.Arrays.copyOfRange(payload, 1, length));
    }

    void send(Builder frame) throws IOException {
        byte[] all = frame.bytes.toByteArray();
        int length = all.length - 4;
        if (length > MAX) {
            throw new IllegalArgumentException("what is shown holds more than " + (MAX >> 20) + " MB: write it to a file");
        }
        all[0] = (byte) (length >> 24);
        all[1] = (byte) (length >> 16);
        all[2] = (byte) (length >> 8);
        all[3] = (byte) length;
        synchronized (lock) {
            out.write(all);
        }
    }

    /** Sends bytes that a cell printed: 'o' for stdout, 'e' for stderr. */
    void print(char type, long cell, byte[] text, int offset, int length) throws IOException {
        for (int end = offset + length; offset < end; offset += TEXT) {
            int part = Math.min(TEXT, end - offset);
            byte[] all = new byte[13 + part];
            int size = 9 + part;
            all[0] = (byte) (size >> 24);
            all[1] = (byte) (size >> 16);
            all[2] = (byte) (size >> 8);
            all[3] = (byte) size;
            all[4] = (byte) type;
            for (int i = 0; i < 8; i++) {
                all[5 + i] = (byte) (cell >> 56 - 8 * i);
            }
            System.arraycopy(text, offset, all, 13, part);
            synchronized (lock) {
                out.write(all);
            }
        }
    }
}
