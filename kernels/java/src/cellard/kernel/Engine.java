package cellard.kernel;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Supplier;
import jdk.jshell.execution.DirectExecutionControl;
import jdk.jshell.spi.ExecutionControl;
import jdk.jshell.spi.ExecutionControlProvider;
import jdk.jshell.spi.ExecutionEnv;
import jdk.jshell.spi.SPIResolutionException;

/**
 * Runs what JShell compiled, in this virtual machine and on the cells' thread. JShell
 * wants each value as text, made by it for every variable whatever its size; here it
 * gets none, and the value of a cell's last expression is made a result while the
 * cell still runs.
 */
final class Engine extends DirectExecutionControl {
    /** How many causes of an exception are told. */
    private static final int CAUSES = 10;

    private final Session session;

    Engine(Session session, Loader loader) {
        super(loader.delegate());
        this.session = session;
    }

    static ExecutionControlProvider provider(Engine engine) {
        return new ExecutionControlProvider() {
            @Override
            public String name() {
                return "cellard";
            }

            @Override
            public ExecutionControl generate(ExecutionEnv env, Map<String, String> parameters) {
                return engine;
            }
        };
    }

    @Override
    public String invoke(String className, String methodName) throws RunException, InternalException {
        try {
            Method method = findClass(className).getDeclaredMethod(methodName);
            method.setAccessible(true);
            session.run(() -> work(method));
            return "";
        } catch (StopCell e) {
            throw new StoppedException();
        } catch (SPIResolutionException e) {
            ResolutionException out = new ResolutionException(e.id(), e.getStackTrace());
            throw out;
        } catch (ReflectiveOperationException | NoClassDefFoundError e) {
            throw new InternalException(e.toString());
        } catch (CellError e) {
            throw exception(e.getCause(), 0);
        } catch (Throwable e) {
            throw exception(e, 0);
        }
    }

    /** Tells an exception of the cell from one of the kernel's. */
    private static final class CellError extends Exception {
        private static final long serialVersionUID = 1;

        CellError(Throwable cause) {
            super(null, cause, false, false);
        }
    }

    /** The debugger stops only what is below this method's frame. */
    private Object work(Method method) throws Exception {
        try {
            Object value = method.invoke(null);
            try {
                session.finished(value);
            } finally {
                forget(method.getDeclaringClass());
            }
            return null;
        } catch (InvocationTargetException e) {
            throw sort(e.getCause());
        } catch (Throwable e) {
            throw sort(e);
        }
    }

    /** Lets a value go that was shown and has no name: the class stays loaded. */
    private static void forget(Class<?> type) throws ReflectiveOperationException {
        for (Field field : type.getDeclaredFields()) {
            if (field.getName().equals(Splitter.VALUE)) {
                field.setAccessible(true);
                field.set(null, null);
            }
        }
    }

    private static Exception sort(Throwable e) {
        if (e instanceof StopCell) {
            throw (StopCell) e;
        }
        if (e instanceof SPIResolutionException) {
            throw (SPIResolutionException) e;
        }
        return new CellError(e);
    }

    private static RunException exception(Throwable e, int depth) {
        RunException out;
        if (e instanceof SPIResolutionException) {
            out = new ResolutionException(((SPIResolutionException) e).id(), e.getStackTrace());
        } else {
            String message = ask(e::getMessage, own -> "(getMessage threw " + own.getClass().getName() + ")");
            StackTraceElement[] stack = ask(e::getStackTrace, own -> null);
            boolean whole = stack != null && Arrays.stream(stack).allMatch(Objects::nonNull);
            out = new UserException(message, e.getClass().getName(), whole ? stack : new StackTraceElement[0]);
        }
        Throwable cause = ask(e::getCause, own -> null);
        if (cause != null && cause != e && depth < CAUSES) {
            out.initCause(exception(cause, depth + 1));
        }
        return out;
    }

    /** What a method of an exception's returns, which may be the user's own. */
    private static <T> T ask(Supplier<T> method, Function<Throwable, T> otherwise) {
        try {
            return method.get();
        } catch (Throwable own) {
            return otherwise.apply(own);
        }
    }

    private boolean looking;
    private Field looked;

    /** The field of the variable whose value is asked for; null where there is none. */
    Field field(Runnable ask) {
        looking = true;
        looked = null;
        try {
            ask.run();
        } catch (RuntimeException e) { // JShell's: the variable is not whole
            looked = null;
        } finally {
            looking = false;
        }
        return looked;
    }

    /** JShell asks for a variable's value to tell it; nobody reads it here. */
    @Override
    public String varValue(String className, String name) {
        if (looking) {
            try {
                looked = findClass(className).getDeclaredField(name);
                looked.setAccessible(true);
            } catch (ReflectiveOperationException | LinkageError e) {
                looked = null;
            }
        }
        return "";
    }
}
