package cellard.kernel;

import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jdk.jshell.execution.LoaderDelegate;
import jdk.jshell.spi.ExecutionControl.ClassBytecodes;
import jdk.jshell.spi.ExecutionControl.ClassInstallException;
import jdk.jshell.spi.ExecutionControl.InternalException;

/**
 * Loads the classes of cells. Of what the kernel itself is made of they see only its
 * own packages, so that a library of the user's is never mixed up with one of ours.
 */
final class Loader extends URLClassLoader {
    private final ClassLoader own = Loader.class.getClassLoader();
    private final Map<String, byte[]> pending = new ConcurrentHashMap<>();
    private volatile Cell cell;

    Loader() {
        super(new URL[0], ClassLoader.getPlatformClassLoader());
    }

    /** Says whose the classes are that are loaded from now on. */
    void loadsFor(Cell cell) {
        this.cell = cell;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        return name.startsWith("cellard.") ? own.loadClass(name) : super.loadClass(name, resolve);
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        byte[] code = pending.remove(name);
        if (code == null) {
            return super.findClass(name);
        }
        return defineClass(name, code, 0, code.length);
    }

    /** This loader as JShell's engines want one. */
    LoaderDelegate delegate() {
        return new Delegate();
    }

    private final class Delegate implements LoaderDelegate {
        @Override
        public void load(ClassBytecodes[] classes) throws ClassInstallException {
            boolean[] loaded = new boolean[classes.length];
            try {
                for (ClassBytecodes c : classes) {
                    pending.put(c.name(), Instrument.transform(c.bytecodes()));
                    Threads.loaded(c.name(), cell);
                }
                for (int i = 0; i < classes.length; i++) {
                    Class<?> type = loadClass(classes[i].name());
                    loaded[i] = true;
                    type.getDeclaredMethods(); // links what it names, as JShell's own loader does
                }
            } catch (Throwable e) {
                throw new ClassInstallException("load: " + e, loaded);
            }
        }

        @Override
        public void classesRedefined(ClassBytecodes[] classes) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void addToClasspath(String path) throws InternalException {
            try {
                for (String part : path.split(File.pathSeparator)) {
                    addURL(new File(part).toURI().toURL());
                }
            } catch (MalformedURLException e) {
                throw new InternalException(e.toString());
            }
        }

        @Override
        public Class<?> findClass(String name) throws ClassNotFoundException {
            return loadClass(name);
        }
    }
}
