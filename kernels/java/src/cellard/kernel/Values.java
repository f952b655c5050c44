package cellard.kernel;

import java.lang.reflect.Array;
import java.util.Base64;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** Makes data to show of values: a MIME bundle. */
final class Values {
    /** The most characters of one text, and elements of one array or collection. */
    private static final int TEXT = 1 << 20;
    private static final int ITEMS = 1000;
    private static final int DEPTH = 4;

    /** A MIME bundle: each type's data as text, and which of them is JSON. */
    static final class Shown {
        final Map<String, String> data = new LinkedHashMap<>();
        final Set<String> json = new HashSet<>();

        Shown add(String type, String value) {
            data.put(type, value);
            return this;
        }

        Shown addJson(String type, String value) {
            json.add(type);
            return add(type, value);
        }
    }

    private Values() {}

    /** What an expression without a value to show comes to: null. */
    static Shown nothing() {
        return new Shown().add("text/plain", "null");
    }

    static Shown show(Object value) {
        Shown shown = new Shown();
        if (Images.is(value)) {
            shown.add("image/png", Images.png(value));
        }
        Tables.add(value, shown);
        return shown.add("text/plain", text(value));
    }

    /** A bundle of the user's: data by MIME type. */
    static Shown bundle(Map<?, ?> data) {
        Shown shown = new Shown();
        for (Map.Entry<?, ?> e : data.entrySet()) {
            String type = (String) e.getKey();
            Object value = e.getValue();
            if (value instanceof byte[]) {
                shown.add(type, Base64.getEncoder().encodeToString((byte[]) value));
            } else if (Images.is(value) && type.equals("image/png")) {
                shown.add(type, Images.png(value));
            } else if (isJson(type) && !(value instanceof String)) {
                shown.addJson(type, Json.write(value));
            } else if (isJson(type)) {
                shown.addJson(type, (String) value);
            } else {
                shown.add(type, String.valueOf(value));
            }
        }
        return shown;
    }

    static boolean isJson(String type) {
        return type.equals("application/json") || type.endsWith("+json");
    }

    /** Whether a map is a bundle: each of its keys looks like a MIME type. */
    static boolean isBundle(Object value) {
        if (!(value instanceof Map) || ((Map<?, ?>) value).isEmpty() || ((Map<?, ?>) value).size() > 50) {
            return false;
        }
        for (Object key : ((Map<?, ?>) value).keySet()) {
            if (!(key instanceof String) || !((String) key).matches("(text|image|audio|video|application|model|font)/[\\w.+-]+")) {
                return false;
            }
        }
        return true;
    }

    /** A value as JShell shows it, and no longer than can be read. */
    static String text(Object value) {
        StringBuilder out = new StringBuilder();
        append(out, value, 0);
        return out.toString();
    }

    private static void append(StringBuilder out, Object value, int depth) {
        if (value == null) {
            out.append("null");
        } else if (value instanceof CharSequence && depth == 0 && value instanceof String) {
            quote(out, (String) value, '"');
        } else if (value instanceof Character && depth == 0) {
            quote(out, value.toString(), '\'');
        } else if (value.getClass().isArray()) {
            array(out, value, depth);
        } else if (value instanceof Collection && isLarge(((Collection<?>) value).size(), value)) {
            many(out, ((Collection<?>) value).iterator(), ((Collection<?>) value).size(), '[', ']', depth);
        } else if (value instanceof Map && isLarge(((Map<?, ?>) value).size(), value)) {
            many(out, ((Map<?, ?>) value).entrySet().iterator(), ((Map<?, ?>) value).size(), '{', '}', depth);
        } else {
            String text = value.toString();
            if (text == null) { // the user's own
                text = "null";
            }
            // What Object.toString says names the class as JShell does.
            cut(out, text.startsWith("REPL.") ? Errors.plain(text) : text);
        }
    }

    /** The JDK's collections print all that they hold; another's has its own toString. */
    private static boolean isLarge(int size, Object value) {
        return size > ITEMS && value.getClass().getName().startsWith("java.util.");
    }

    private static void many(StringBuilder out, Iterator<?> items, int size, char open, char close, int depth) {
        out.append(open);
        for (int i = 0; i < ITEMS && items.hasNext(); i++) {
            if (i > 0) {
                out.append(", ");
            }
            item(out, items.next(), depth);
            if (out.length() > TEXT) {
                break;
            }
        }
        out.append(", … ").append(size).append(" in all").append(close);
    }

    private static void item(StringBuilder out, Object value, int depth) {
        if (depth >= DEPTH) {
            out.append('…');
        } else if (value instanceof Map.Entry && depth < DEPTH) {
            append(out, ((Map.Entry<?, ?>) value).getKey(), depth + 1);
            out.append('=');
            append(out, ((Map.Entry<?, ?>) value).getValue(), depth + 1);
        } else {
            append(out, value, depth + 1);
        }
    }

    /** int[3] { 1, 2, 3 }, as JShell has it. */
    private static void array(StringBuilder out, Object array, int depth) {
        int length = Array.getLength(array);
        Class<?> type = array.getClass();
        int dimensions = 0;
        while (type.isArray()) {
            type = type.getComponentType();
            dimensions++;
        }
        out.append(type.getSimpleName()).append('[').append(length).append(']').append("[]".repeat(dimensions - 1)).append(" {");
        for (int i = 0; i < length; i++) {
            out.append(i == 0 ? " " : ", ");
            if (i == ITEMS || out.length() > TEXT || depth >= DEPTH) {
                out.append("…");
                break;
            }
            Object item = Array.get(array, i);
            if (item instanceof String) {
                quote(out, (String) item, '"');
            } else if (item instanceof Character) {
                quote(out, item.toString(), '\'');
            } else {
                append(out, item, depth + 1);
            }
        }
        out.append(" }");
    }

    private static void cut(StringBuilder out, String text) {
        int left = Math.max(0, TEXT - out.length());
        if (text.length() <= left) {
            out.append(text);
            return;
        }
        int end = left > 0 && Character.isHighSurrogate(text.charAt(left - 1)) ? left - 1 : left;
        out.append(text, 0, end).append("… (").append(text.length()).append(" characters in all)");
    }

    static void quote(StringBuilder out, String text, char quote) {
        out.append(quote);
        int end = Math.min(text.length(), TEXT);
        for (int i = 0; i < end; i++) {
            char c = text.charAt(i);
            switch (c) {
                case '\n' -> out.append("\\n");
                case '\t' -> out.append("\\t");
                case '\r' -> out.append("\\r");
                case '\b' -> out.append("\\b");
                case '\f' -> out.append("\\f");
                case '\\' -> out.append("\\\\");
                default -> {
                    if (c == quote) {
                        out.append('\\').append(c);
                    } else if (c < 0x20 || c == 0x7f) {
                        out.append(String.format("\\u%04x", (int) c));
                    } else {
                        out.append(c);
                    }
                }
            }
        }
        out.append(quote);
        if (end < text.length()) {
            out.append("… (").append(text.length()).append(" characters in all)");
        }
    }
}
