package cellard.kernel;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.stream.Stream;

/**
 * Whose a thread is. A thread belongs to the cell that started it, by inheritance; a
 * thread of a pool works for whoever gave it the work, and belongs to the newest cell
 * whose classes are on its stack.
 */
final class Threads {
    static final InheritableThreadLocal<Cell> OWNER = new InheritableThreadLocal<>();

    /** The prefix of JShell's classes. */
    private static final String REPL = "REPL.";

    /** Which cell a class of JShell's came with, by its name without nested ones'. */
    private static final Map<String, Cell> CLASSES = new ConcurrentHashMap<>();

    private static final StackWalker WALKER = StackWalker.getInstance();

    private Threads() {}

    static void loaded(String name, Cell cell) {
        if (cell != null && name.startsWith(REPL)) {
            CLASSES.put(outer(name), cell);
        }
    }

    /** The cell that a class of JShell's came with, as errors name it. */
    static String place(String name) {
        Cell cell = CLASSES.get(name);
        return cell == null ? "cell" : "In[" + cell.count + "]";
    }

    private static String outer(String name) {
        // REPL.$JShell$12$Inner: the third dollar begins the nested class.
        int at = name.indexOf('$', name.indexOf('$', REPL.length() + 1) + 1);
        return at < 0 ? name : name.substring(0, at);
    }

    /** The cell that the current thread works for; null for none. */
    static Cell owner() {
        Thread thread = Thread.currentThread();
        if (thread instanceof CellThread) {
            return ((CellThread) thread).cell;
        }
        Cell inherited = OWNER.get();
        Cell[] newest = {isCommonWorker(thread) ? null : inherited};
        WALKER.forEach(frame -> newest[0] = newer(newest[0], cellOf(frame.getClassName())));
        return newest[0] == null ? inherited : newest[0];
    }

    private static Cell cellOf(String className) {
        return className.startsWith(REPL) ? CLASSES.get(outer(className)) : null;
    }

    private static Cell newer(Cell a, Cell b) {
        return a == null || b != null && b.id > a.id ? b : a;
    }

    /** Throws if the current thread's cell is to stop. */
    static void endIfDead() {
        Cell cell = owner();
        if (cell != null && cell.dead) {
            throw StopCell.INSTANCE;
        }
    }

    /**
     * The threads that work for a cell which is to stop. One that waits, and has no
     * class of a cell on its stack, is a pool's with nothing to do: it is let be, for
     * its pool would only start another.
     */
    static List<Thread> busyOfDeadCells() {
        return ofDeadCells(true);
    }

    /** Whether any thread is left of a cell that is to stop, busy or not. */
    static boolean hasDead() {
        return !ofDeadCells(false).isEmpty();
    }

    private static List<Thread> ofDeadCells(boolean busy) {
        List<Thread> out = new ArrayList<>();
        for (Map.Entry<Thread, StackTraceElement[]> e : Thread.getAllStackTraces().entrySet()) {
            add(e.getKey(), e.getValue(), busy, out);
        }
        for (Thread thread : virtual()) {
            add(thread, thread.getStackTrace(), busy, out);
        }
        return out;
    }

    private static void add(Thread thread, StackTraceElement[] stack, boolean busy, List<Thread> out) {
        if (!dead(ownerOf(thread, stack))) {
            return;
        }
        Thread.State state = thread.getState();
        boolean waits = state == Thread.State.WAITING || state == Thread.State.TIMED_WAITING;
        if (state != Thread.State.TERMINATED && (!busy || !waits || thread instanceof CellThread || hasCellClass(stack))) {
            out.add(thread);
        }
    }

    private static boolean hasCellClass(StackTraceElement[] stack) {
        for (StackTraceElement frame : stack) {
            if (cellOf(frame.getClassName()) != null) {
                return true;
            }
        }
        return false;
    }

    private static boolean dead(Cell cell) {
        return cell != null && cell.dead;
    }

    private static Cell ownerOf(Thread thread, StackTraceElement[] stack) {
        if (thread instanceof CellThread) {
            return ((CellThread) thread).cell;
        }
        boolean common = isCommonWorker(thread);
        Cell inherited = inheritedBy(thread);
        Cell newest = common ? null : inherited;
        boolean works = false;
        for (StackTraceElement frame : stack) {
            newest = newer(newest, cellOf(frame.getClassName()));
            works |= frame.getMethodName().equals("doExec");
        }
        if (common && newest == null && works) {
            return Stopper.stopping; // work without a class of a cell: the running one's
        }
        return newest;
    }

    /** Workers of the common pool live on, and inherit from whoever came first. */
    private static boolean isCommonWorker(Thread thread) {
        return thread instanceof ForkJoinWorkerThread w && w.getPool() == ForkJoinPool.commonPool();
    }

    // What follows reads another thread's locals, and asks for virtual threads: both
    // take what the manifest opens, and give nothing where a JDK has changed.

    private static Cell inheritedBy(Thread thread) {
        try {
            Object map = Inner.MAP.get(thread);
            if (map == null) {
                return null;
            }
            Object entry = Inner.ENTRY.invoke(map, OWNER);
            return entry == null ? null : (Cell) Inner.VALUE.get(entry);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            return null;
        }
    }

    private static List<Thread> virtual() {
        try {
            Object root = Inner.ROOT == null ? null : Inner.ROOT.invoke(null);
            if (root == null) {
                return List.of();
            }
            List<Thread> out = new ArrayList<>();
            collect(root, out, 0);
            return out;
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            return List.of();
        }
    }

    private static void collect(Object container, List<Thread> out, int depth) throws ReflectiveOperationException {
        try (Stream<?> threads = (Stream<?>) Inner.THREADS.invoke(container)) {
            threads.forEach(t -> {
                if (!Inner.isPlatform((Thread) t)) {
                    out.add((Thread) t);
                }
            });
        }
        if (depth < 100) {
            for (Object child : ((Stream<?>) Inner.CHILDREN.invoke(container)).toList()) {
                collect(child, out, depth + 1);
            }
        }
    }

    /** Apart, so that a JDK without these costs no more than what they give. */
    private static final class Inner {
        static final Field MAP;
        static final Method ENTRY;
        static final Field VALUE;
        static final Method ROOT;
        static final Method THREADS;
        static final Method CHILDREN;
        static final Method VIRTUAL;

        static {
            try {
                MAP = Thread.class.getDeclaredField("inheritableThreadLocals");
                MAP.setAccessible(true);
                ENTRY = MAP.getType().getDeclaredMethod("getEntry", ThreadLocal.class);
                ENTRY.setAccessible(true);
                VALUE = ENTRY.getReturnType().getDeclaredField("value");
                VALUE.setAccessible(true);
            } catch (ReflectiveOperationException e) {
                throw new ExceptionInInitializerError(e);
            }
            Method root = null;
            Method threads = null;
            Method children = null;
            Method virtual = null;
            try {
                virtual = Thread.class.getMethod("isVirtual");
                Class<?> type = Class.forName("jdk.internal.vm.ThreadContainer");
                threads = type.getMethod("threads");
                children = type.getMethod("children");
                root = Class.forName("jdk.internal.vm.ThreadContainers").getMethod("root");
            } catch (ReflectiveOperationException e) {
                root = null; // a JDK without virtual threads
            }
            ROOT = root;
            THREADS = threads;
            CHILDREN = children;
            VIRTUAL = virtual;
        }

        static boolean isPlatform(Thread thread) {
            try {
                return !(Boolean) VIRTUAL.invoke(thread);
            } catch (ReflectiveOperationException e) {
                return true;
            }
        }
    }
}
