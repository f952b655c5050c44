package cellard.kernel;

import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.temporal.Temporal;
import java.util.ArrayList;
import java.util.Date;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Lists of records, and of maps with text for keys, as tables. Making one never fails
 * a cell, never changes the data, and looks at no more of it than it shows.
 */
final class Tables {
    static final String MIME = "application/vnd.runtime.table+json";

    private static final int ROWS = limit("CELLARD_TABLE_ROWS", 1000);
    private static final int COLUMNS = limit("CELLARD_TABLE_COLUMNS", 100);
    /** Characters of one text, and of a whole table; and how long it may take, in ns. */
    private static final int TEXT = 32 << 10;
    private static final int TOTAL = 8 << 20;
    private static final long TIME = 2_000_000_000L;
    /** How deep what is in one field may be nested, to be JSON of its own. */
    private static final int DEPTH = 8;
    /** Rows that are shown as HTML. */
    private static final int HTML_ROWS = 60;
    /** Past it a double does not hold every integer, and many read JSON's numbers as such. */
    private static final long EXACT = 1L << 53;

    private Tables() {}

    private static int limit(String name, int standard) {
        try {
            int value = Integer.parseInt(System.getenv(name));
            return value > 0 ? value : standard;
        } catch (NumberFormatException e) {
            return standard;
        }
    }

    /** Adds a value's table, if it is one. */
    static void add(Object value, Values.Shown shown) {
        if (!(value instanceof List) || ((List<?>) value).isEmpty()) {
            return;
        }
        try {
            Table table = new Table((List<?>) value);
            if (table.make()) {
                shown.addJson(MIME, table.json());
                shown.add("text/html", table.html());
            }
        } catch (Exception | StackOverflowError | OutOfMemoryError e) {
            // The value's text is there all the same. What stops the cell passes.
        }
    }

    /** A record's values by name. */
    static Map<String, Object> fields(Record record) {
        Map<String, Object> out = new LinkedHashMap<>();
        for (RecordComponent c : record.getClass().getRecordComponents()) {
            out.put(c.getName(), get(c.getAccessor(), record));
        }
        return out;
    }

    private static Object get(Method accessor, Object record) {
        try {
            accessor.setAccessible(true);
            return accessor.invoke(record);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof StopCell) {
                throw (StopCell) e.getCause();
            }
            return null;
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }

    private static final class Table {
        private final List<?> list;
        private final int size;
        private final List<String> names = new ArrayList<>();
        private final List<Class<?>> declared = new ArrayList<>();
        private final List<List<String>> rows = new ArrayList<>();
        private final List<Set<String>> kinds = new ArrayList<>();
        private final long end = System.nanoTime() + TIME;
        private int left = TOTAL;
        private boolean cut;

        Table(List<?> list) {
            this.list = list;
            this.size = list.size();
        }

        /** Reads the list; false if it is not a table. */
        boolean make() {
            Iterator<?> items = list.iterator();
            Object first = items.next();
            if (first instanceof Record) {
                return records(first.getClass());
            }
            return first instanceof Map && maps();
        }

        private boolean records(Class<?> type) {
            RecordComponent[] components = type.getRecordComponents();
            if (components.length == 0) {
                return false;
            }
            for (RecordComponent c : components) {
                if (names.size() == COLUMNS) {
                    cut = true;
                    break;
                }
                column(c.getName(), c.getType());
            }
            for (Object item : list) {
                if (rows.size() == ROWS || spent()) {
                    break;
                }
                if (item == null || item.getClass() != type) {
                    return false;
                }
                List<String> row = new ArrayList<>();
                for (int i = 0; i < names.size(); i++) {
                    row.add(cell(i, get(components[i].getAccessor(), item)));
                }
                rows.add(row);
            }
            return true;
        }

        private boolean maps() {
            List<Map<?, ?>> shown = new ArrayList<>();
            Set<String> keys = new LinkedHashSet<>();
            for (Object item : list) {
                if (shown.size() == ROWS || spent()) {
                    break;
                }
                if (!(item instanceof Map)) {
                    return false;
                }
                for (Object key : ((Map<?, ?>) item).keySet()) {
                    if (!(key instanceof String)) {
                        return false;
                    }
                    if (keys.size() < COLUMNS) {
                        keys.add((String) key);
                    } else {
                        cut |= !keys.contains(key);
                    }
                }
                shown.add((Map<?, ?>) item);
            }
            if (keys.isEmpty()) {
                return false;
            }
            keys.forEach(key -> column(key, Object.class));
            for (Map<?, ?> item : shown) {
                if (spent()) {
                    break;
                }
                List<String> row = new ArrayList<>();
                int i = 0;
                for (String key : keys) {
                    row.add(cell(i++, item.get(key)));
                }
                rows.add(row);
            }
            return true;
        }

        private void column(String name, Class<?> type) {
            names.add(name);
            declared.add(type);
            kinds.add(new LinkedHashSet<>());
        }

        private boolean spent() {
            return left < 0 || System.nanoTime() > end;
        }

        /** A value as JSON. */
        private String cell(int column, Object value) {
            String out = json(column, value);
            left -= out.length();
            return out;
        }

        private String json(int column, Object value) {
            if (value == null) {
                return "null";
            }
            kinds.get(column).add(kind(value));
            if (nests(value)) {
                StringBuilder out = new StringBuilder();
                return nested(value, out, 0) ? out.toString() : quoted(Values.text(value));
            }
            return one(value);
        }

        /** A value that holds no others. */
        private String one(Object value) {
            if (value instanceof Boolean) {
                return value.toString();
            }
            if (value instanceof Double || value instanceof Float) {
                return Double.isFinite(((Number) value).doubleValue()) ? value.toString() : "null";
            }
            if (kind(value).equals("integer")) {
                BigInteger number = new BigInteger(value.toString());
                boolean exact = number.bitLength() < 54 || number.abs().equals(BigInteger.valueOf(EXACT));
                return exact ? number.toString() : '"' + text(number.toString()) + '"';
            }
            if (value instanceof BigDecimal) {
                BigDecimal number = (BigDecimal) value;
                double near = number.doubleValue();
                return Double.isFinite(near) && new BigDecimal(Double.toString(near)).compareTo(number) == 0
                        ? Double.toString(near) : quoted(value.toString());
            }
            if (value instanceof Date) {
                return quoted(java.time.Instant.ofEpochMilli(((Date) value).getTime()).toString());
            }
            return quoted(value.toString());
        }

        private static boolean nests(Object value) {
            return value.getClass().isArray() || value instanceof Iterable && !(value instanceof java.nio.file.Path)
                    || value instanceof Map || value instanceof Record;
        }

        /** Writes what a value holds; false where that is too much, or nested too deep. */
        private boolean nested(Object value, StringBuilder out, int depth) {
            if (out.length() > TEXT || depth > DEPTH || System.nanoTime() > end) {
                return false;
            }
            if (value == null || !nests(value)) {
                out.append(value == null ? "null" : one(value));
                return true;
            }
            if (value instanceof Map || value instanceof Record) {
                char next = '{';
                for (Map.Entry<?, ?> e : (value instanceof Map ? (Map<?, ?>) value : fields((Record) value)).entrySet()) {
                    Json.quote(out.append(next), String.valueOf(e.getKey()));
                    if (!nested(e.getValue(), out.append(':'), depth + 1)) {
                        return false;
                    }
                    next = ',';
                }
                out.append(next == '{' ? "{}" : "}");
                return true;
            }
            char next = '[';
            if (value instanceof Iterable) {
                for (Object item : (Iterable<?>) value) {
                    if (!nested(item, out.append(next), depth + 1)) {
                        return false;
                    }
                    next = ',';
                }
            } else {
                for (int i = 0; i < Array.getLength(value); i++) {
                    if (!nested(Array.get(value, i), out.append(next), depth + 1)) {
                        return false;
                    }
                    next = ',';
                }
            }
            out.append(next == '[' ? "[]" : "]");
            return true;
        }

        private String quoted(String value) {
            StringBuilder out = new StringBuilder();
            Json.quote(out, text(value));
            return out.toString();
        }

        private String text(String value) {
            if (value.length() <= TEXT) {
                return value;
            }
            cut = true;
            int at = Character.isHighSurrogate(value.charAt(TEXT - 1)) ? TEXT - 1 : TEXT;
            return value.substring(0, at) + "…";
        }

        private static String kind(Object value) {
            if (value instanceof Boolean) {
                return "boolean";
            }
            if (value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte
                    || value instanceof BigInteger || value instanceof java.util.concurrent.atomic.AtomicInteger
                    || value instanceof java.util.concurrent.atomic.AtomicLong) {
                return "integer";
            }
            if (value instanceof Double || value instanceof Float || value instanceof BigDecimal) {
                return "number";
            }
            if (value instanceof CharSequence || value instanceof Character || value instanceof java.util.UUID
                    || value instanceof Enum) {
                return "string";
            }
            if (value instanceof Date || value instanceof Temporal && !(value instanceof java.time.Year)) {
                return "datetime";
            }
            return value instanceof Duration ? "duration" : "any";
        }

        private String type(int column) {
            Set<String> seen = kinds.get(column);
            if (seen.size() == 1) {
                return seen.iterator().next();
            }
            if (seen.size() == 2 && seen.contains("integer") && seen.contains("number")) {
                return "number";
            }
            return seen.isEmpty() ? ofClass(declared.get(column)) : "any";
        }

        /** The type of a column that holds nothing but null. */
        private static String ofClass(Class<?> type) {
            if (type == String.class) {
                return "string";
            }
            if (type == Integer.class || type == Long.class || type == Short.class || type == Byte.class
                    || type == BigInteger.class) {
                return "integer";
            }
            if (type == Double.class || type == Float.class || type == BigDecimal.class) {
                return "number";
            }
            if (type == Boolean.class) {
                return "boolean";
            }
            if (type == Duration.class) {
                return "duration";
            }
            return Temporal.class.isAssignableFrom(type) || Date.class.isAssignableFrom(type) ? "datetime" : "any";
        }

        String json() {
            StringBuilder out = new StringBuilder("{\"columns\":[");
            for (int i = 0; i < names.size(); i++) {
                out.append(i == 0 ? "" : ",").append(quoted(names.get(i)));
            }
            out.append("],\"types\":[");
            for (int i = 0; i < names.size(); i++) {
                out.append(i == 0 ? "\"" : ",\"").append(type(i)).append('"');
            }
            out.append("],\"rows\":[");
            for (int i = 0; i < rows.size(); i++) {
                out.append(i == 0 ? "[" : ",[").append(String.join(",", rows.get(i))).append(']');
            }
            return out.append("],\"index\":null,\"rowCount\":").append(size).append(",\"truncated\":")
                    .append(cut || rows.size() < size).append('}').toString();
        }

        String html() {
            StringBuilder out = new StringBuilder("<table><thead><tr>");
            for (String name : names) {
                out.append("<th>").append(escape(name)).append("</th>");
            }
            out.append("</tr></thead><tbody>");
            for (int i = 0; i < Math.min(rows.size(), HTML_ROWS); i++) {
                out.append("<tr>");
                for (String value : rows.get(i)) {
                    out.append("<td>").append(escape(plain(value))).append("</td>");
                }
                out.append("</tr>");
            }
            out.append("</tbody></table>");
            if (size > Math.min(rows.size(), HTML_ROWS)) {
                out.append("<p>").append(size).append(" rows</p>");
            }
            return out.toString();
        }

        /** A cell's JSON without what JSON needs. */
        private static String plain(String json) {
            if (!json.startsWith("\"")) {
                return json.equals("null") ? "" : json;
            }
            return json.substring(1, json.length() - 1).replace("\\u000a", "\n").replace("\\\"", "\"").replace("\\\\", "\\");
        }

        private static String escape(String text) {
            return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
        }
    }
}
