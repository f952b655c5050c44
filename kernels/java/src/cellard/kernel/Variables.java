package cellard.kernel;

import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.RecordComponent;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import jdk.jshell.JShell;
import jdk.jshell.Snippet;
import jdk.jshell.VarSnippet;

/**
 * The session's variables: what there is, told without running any code of the cells'.
 *
 * A class of theirs may have a toString, size or accessor that loops or ends, and so may
 * what one of the JDK's wraps or compares by. So fields are read as they are, and methods
 * asked only of classes that hold what they tell themselves, and take no lock.
 */
final class Variables {
    /** Variables of a list, characters of a text, elements of a value, levels of them. */
    private static final int MOST = 1000;
    private static final int TEXT = 120;
    private static final int ITEMS = 10;
    private static final int DEPTH = 2;
    /** Past so many bits a number takes long to write in decimal. */
    private static final int BITS = 1024;
    /** How long looking at the values may take, in milliseconds: threads of a cell's may change them meanwhile. */
    private static final long WAIT = 2000;

    /** Collections whose elements no foreign code tells. Subclasses, which a cell may write, are none of them. */
    private static final Set<String> PLAIN = Set.of(
            "ArrayList", "Arrays$ArrayList", "LinkedList", "ArrayDeque", "PriorityQueue", "HashSet", "LinkedHashSet", "TreeSet",
            "HashMap", "LinkedHashMap", "TreeMap", "IdentityHashMap", "EnumMap", "RegularEnumSet", "JumboEnumSet",
            "ImmutableCollections$ListN", "ImmutableCollections$List12", "ImmutableCollections$SetN", "ImmutableCollections$Set12",
            "ImmutableCollections$MapN", "ImmutableCollections$Map1", "Collections$EmptyList", "Collections$EmptySet",
            "Collections$EmptyMap", "Collections$SingletonList", "Collections$SingletonSet", "Collections$SingletonMap",
            "concurrent.ConcurrentHashMap", "concurrent.CopyOnWriteArrayList", "concurrent.ConcurrentSkipListMap");

    private final JShell shell;
    private final Engine engine;
    private Thread looking;

    Variables(JShell shell, Engine engine) {
        this.shell = shell;
        this.engine = engine;
    }

    /** What is told of one. */
    private static final class Told {
        final VarSnippet variable;
        volatile long size = -1;
        volatile String text = "";

        Told(VarSnippet variable) {
            this.variable = variable;
        }
    }

    void list(Wire.Builder out) {
        List<VarSnippet> all = shell.variables()
                .filter(v -> !Session.temporary(v))
                .sorted(Comparator.comparing(VarSnippet::name))
                .collect(Collectors.toList());
        List<Told> told = all.stream().limit(MOST).map(Told::new).collect(Collectors.toList());
        look(told);
        out.small(all.size()).small(told.size());
        for (Told one : told) {
            out.text(cut(one.variable.name())).text(cut(one.variable.typeName().replaceAll(",(?! )", ", "))).number(one.size).text(cut(one.text));
        }
    }

    /**
     * Looks at the values, on a thread of its own: a tree that a cell's threads have changed
     * at once may have no end. Where that is so, no more are looked at.
     */
    private void look(List<Told> told) {
        if (looking != null && looking.isAlive()) {
            return;
        }
        List<Field> fields = new ArrayList<>();
        for (Told one : told) {
            fields.add(shell.status(one.variable) == Snippet.Status.VALID ? engine.field(() -> shell.varValue(one.variable)) : null);
        }
        looking = new Thread(null, () -> {
            for (int i = 0; i < fields.size(); i++) {
                describe(told.get(i), fields.get(i));
            }
        }, "cellard variables");
        looking.setDaemon(true);
        looking.start();
        long end = System.nanoTime() + WAIT * 1_000_000;
        for (long left = WAIT; looking.isAlive() && left > 0; left = (end - System.nanoTime()) / 1_000_000) {
            try {
                looking.join(left);
            } catch (InterruptedException e) {
                // a cell's doing, which looks for threads
            }
        }
    }

    private static void describe(Told one, Field field) {
        if (field == null) {
            return;
        }
        try {
            Object value = field.get(null);
            one.size = size(value);
            StringBuilder out = new StringBuilder();
            append(out, value, 0);
            one.text = out.toString();
        } catch (ReflectiveOperationException | RuntimeException | Error e) {
            // changed meanwhile by a thread of a cell's: what is known of it is told
        }
    }

    private static boolean isPlain(Object value) {
        Class<?> type = value.getClass();
        return type.getClassLoader() == null && type.getName().startsWith("java.util.")
                && PLAIN.contains(type.getName().substring("java.util.".length()));
    }

    /** How many elements or characters there are; -1 where there is no such number. */
    private static long size(Object value) {
        if (value == null) {
            return -1;
        }
        if (value.getClass().isArray()) {
            return Array.getLength(value);
        }
        if (value instanceof String || value instanceof StringBuilder) {
            return ((CharSequence) value).length();
        }
        if (!isPlain(value)) {
            return -1;
        }
        return value instanceof Map ? ((Map<?, ?>) value).size() : ((Collection<?>) value).size();
    }

    private static void append(StringBuilder out, Object value, int depth) throws ReflectiveOperationException {
        if (out.length() > TEXT) {
            return;
        }
        if (value == null) {
            out.append("null");
        } else if (value instanceof String || value instanceof StringBuilder) {
            CharSequence text = (CharSequence) value;
            Values.quote(out, text.subSequence(0, Math.min(text.length(), TEXT)).toString(), '"');
        } else if (value instanceof Character) {
            Values.quote(out, value.toString(), '\'');
        } else if (value instanceof Enum) {
            out.append(((Enum<?>) value).name());
        } else if (value instanceof Pair) {
            Pair pair = (Pair) value;
            if (pair.key instanceof Field) {
                out.append(((Field) pair.key).getName());
            } else {
                append(out, pair.key, depth);
            }
            append(out.append('='), pair.value, depth);
        } else if (value.getClass().isArray()) {
            int length = Array.getLength(value);
            items(out, length, i -> Array.get(value, i), "{", "}", depth);
        } else if (value instanceof Optional) {
            Object inner = ((Optional<?>) value).orElse(null);
            items(out, inner == null ? 0 : 1, i -> inner, "Optional[", "]", depth);
        } else if (isPlain(value)) {
            boolean map = value instanceof Map;
            Iterator<?> all = map ? ((Map<?, ?>) value).entrySet().iterator() : ((Collection<?>) value).iterator();
            items(out, size(value), i -> map ? new Pair((Map.Entry<?, ?>) all.next()) : all.next(), map ? "{" : "[", map ? "}" : "]", depth);
        } else if (value instanceof Record) {
            record(out, value, depth);
        } else if (isWritten(value)) {
            out.append(value);
        } else if (depth > 0) {
            out.append('<').append(name(value.getClass())).append('>');
        }
    }

    private interface Items {
        Object get(int i) throws ReflectiveOperationException;
    }

    private static void items(StringBuilder out, long size, Items items, String open, String close, int depth)
            throws ReflectiveOperationException {
        out.append(open);
        for (int i = 0; i < size && out.length() <= TEXT; i++) {
            out.append(i == 0 ? "" : ", ");
            if (i == ITEMS || depth == DEPTH) {
                out.append('…');
                break;
            }
            append(out, items.get(i), depth + 1);
        }
        out.append(close);
    }

    /** A record by its fields: its accessors may be the user's own. */
    private static void record(StringBuilder out, Object value, int depth) throws ReflectiveOperationException {
        Class<?> type = value.getClass();
        RecordComponent[] components = type.getRecordComponents();
        out.append(name(type));
        items(out, components.length, i -> {
            Field field = type.getDeclaredField(components[i].getName());
            field.setAccessible(true);
            return new Pair(field, field.get(value));
        }, "[", "]", depth);
    }

    /** An entry of a map, or a record's field. */
    private static final class Pair {
        final Object key;
        final Object value;

        Pair(Map.Entry<?, ?> entry) {
            key = entry.getKey();
            value = entry.getValue();
        }

        Pair(Field field, Object value) {
            this.key = field;
            this.value = value;
        }
    }

    /** Whether its toString is the JDK's, short, and asks nothing else. */
    private static boolean isWritten(Object value) {
        Class<?> type = value.getClass();
        if (type == BigInteger.class) {
            return ((BigInteger) value).bitLength() <= BITS;
        }
        if (type == BigDecimal.class) {
            return ((BigDecimal) value).unscaledValue().bitLength() <= BITS;
        }
        return value instanceof Number && type.getName().startsWith("java.lang.")
                || type == Boolean.class || type == UUID.class || type == File.class || type == Pattern.class || type == Class.class
                || type == AtomicInteger.class || type == AtomicLong.class || type == AtomicBoolean.class
                || type.getName().startsWith("java.time.") && type.getPackageName().equals("java.time") && Modifier.isFinal(type.getModifiers());
    }

    private static String name(Class<?> type) {
        String name = Errors.plain(type.getName());
        return name.substring(name.lastIndexOf('.') + 1);
    }

    private static String cut(String text) {
        if (text.length() <= TEXT) {
            return text;
        }
        int end = Character.isHighSurrogate(text.charAt(TEXT - 2)) ? TEXT - 2 : TEXT - 1;
        return text.substring(0, end) + "…";
    }
}
