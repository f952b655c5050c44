package cellard.kernel;

import java.lang.reflect.Array;
import java.util.Map;

/** Writes JSON. */
final class Json {
    /** How deep values are nested at most. */
    private static final int DEPTH = 100;

    private Json() {}

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        append(out, value, 0);
        return out.toString();
    }

    private static void append(StringBuilder out, Object value, int depth) {
        if (depth > DEPTH) {
            throw new IllegalArgumentException("the value is nested deeper than " + DEPTH + ": JSON can't show it");
        }
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long
                || value instanceof Short || value instanceof Byte || value instanceof java.math.BigInteger) {
            out.append(value);
        } else if (value instanceof java.math.BigDecimal) {
            out.append(value);
        } else if (value instanceof Double || value instanceof Float) {
            double number = ((Number) value).doubleValue();
            out.append(Double.isFinite(number) ? value.toString() : "null");
        } else if (value instanceof Map) {
            char next = '{';
            for (Map.Entry<?, ?> e : ((Map<?, ?>) value).entrySet()) {
                out.append(next);
                quote(out, String.valueOf(e.getKey()));
                out.append(':');
                append(out, e.getValue(), depth + 1);
                next = ',';
            }
            out.append(next == '{' ? "{}" : "}");
        } else if (value instanceof Iterable) {
            char next = '[';
            for (Object item : (Iterable<?>) value) {
                out.append(next);
                append(out, item, depth + 1);
                next = ',';
            }
            out.append(next == '[' ? "[]" : "]");
        } else if (value.getClass().isArray()) {
            out.append('[');
            for (int i = 0; i < Array.getLength(value); i++) {
                if (i > 0) {
                    out.append(',');
                }
                append(out, Array.get(value, i), depth + 1);
            }
            out.append(']');
        } else if (value instanceof Record) {
            append(out, Tables.fields((Record) value), depth);
        } else {
            quote(out, value.toString());
        }
    }

    static void quote(StringBuilder out, String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
