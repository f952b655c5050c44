package cellard.kernel;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * A cell's environment and directory. The directory is the process's own: the other
 * process changes it, for they share it, see directory.go; what is changed here is
 * what Java remembers of it. The environment can't be changed in a process from
 * outside: what System.getenv returns is, and so is what children get, for Java gives
 * it to them instead of letting them inherit.
 */
final class Environment {
    private final Calls calls;
    private boolean patched;

    private final List<Runnable> undo = new ArrayList<>();

    Environment(Calls calls) {
        this.calls = calls;
    }

    /** Applies both; the text, where it can't be done, is for the user. */
    String apply(Map<String, String> env, String cwd) {
        try {
            if (!cwd.isEmpty()) {
                directory(cwd);
            }
            if (!env.isEmpty()) {
                children();
                variables(env);
            }
            return null;
        } catch (ReflectiveOperationException | RuntimeException | IOException e) {
            restore();
            return "this Java (" + System.getProperty("java.version") + ") does not let a cell have env or cwd of its own: " + e;
        }
    }

    void restore() {
        for (int i = undo.size() - 1; i >= 0; i--) {
            undo.get(i).run();
        }
        undo.clear();
    }

    // Variables.

    @SuppressWarnings("unchecked")
    private void variables(Map<String, String> env) throws ReflectiveOperationException {
        Class<?> type = Class.forName("java.lang.ProcessEnvironment");
        Field field = type.getDeclaredField("theEnvironment");
        field.setAccessible(true);
        Map<Object, Object> variables = (Map<Object, Object>) field.get(null);
        Method name = valueOf("java.lang.ProcessEnvironment$Variable");
        Method value = valueOf("java.lang.ProcessEnvironment$Value");
        for (Map.Entry<String, String> e : env.entrySet()) {
            Object key = name.invoke(null, e.getKey());
            Object old = variables.put(key, value.invoke(null, e.getValue()));
            undo.add(() -> {
                if (old == null) {
                    variables.remove(key);
                } else {
                    variables.put(key, old);
                }
            });
        }
    }

    private static Method valueOf(String type) throws ReflectiveOperationException {
        Method method = Class.forName(type).getDeclaredMethod("valueOf", String.class);
        method.setAccessible(true);
        return method;
    }

    /**
     * Makes ProcessBuilder.start take Java's environment where none was asked for,
     * which else lets the child inherit the process's. The debugger's interface
     * replaces the method, once, and only in a session that needs it.
     */
    private void children() throws IOException {
        if (patched) {
            return;
        }
        byte[] code;
        try (InputStream in = ClassLoader.getSystemResourceAsStream("java/lang/ProcessBuilder.class")) {
            if (in == null) {
                throw new IOException("there is no ProcessBuilder.class");
            }
            code = in.readAllBytes();
        }
        boolean[] found = {false};
        byte[] changed = Instrument.rewrite(code, writer -> new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
                if (!name.equals("start") || !descriptor.startsWith("([")) {
                    return next;
                }
                found[0] = true;
                return new MethodVisitor(Opcodes.ASM9, next) {
                    @Override
                    public void visitCode() {
                        super.visitCode();
                        super.visitVarInsn(Opcodes.ALOAD, 0);
                        super.visitMethodInsn(Opcodes.INVOKEVIRTUAL, "java/lang/ProcessBuilder", "environment",
                                "()Ljava/util/Map;", false);
                        super.visitInsn(Opcodes.POP);
                    }
                };
            }
        });
        if (!found[0]) {
            throw new IOException("ProcessBuilder is not as expected");
        }
        new ProcessBuilder(); // it must be loaded before it can be replaced
        Calls.Answer answer = calls.insist('P', frame -> frame.text("Ljava/lang/ProcessBuilder;").raw(changed), 10_000);
        if (answer == null || !answer.ok) {
            throw new IOException(answer == null ? "the debugger's interface does not answer" : answer.value);
        }
        patched = true;
    }

    // The directory.

    private void directory(String cwd) throws ReflectiveOperationException {
        String property = System.getProperty("user.dir");
        Field fs = fileSystem();
        Object files = fs.get(null);
        Field userDir = files.getClass().getDeclaredField("userDir");
        userDir.setAccessible(true);
        Object oldUserDir = userDir.get(files);
        FileSystem paths = FileSystems.getDefault();
        Field standard = paths.getClass().getSuperclass().getDeclaredField("defaultDirectory");
        standard.setAccessible(true);
        Object oldStandard = standard.get(paths);
        undo.add(() -> {
            if (cwd.equals(System.getProperty("user.dir"))) {
                System.setProperty("user.dir", property);
            }
            set(userDir, files, oldUserDir);
            set(standard, paths, oldStandard);
        });
        System.setProperty("user.dir", cwd);
        userDir.set(files, cwd);
        standard.set(paths, cwd.getBytes(StandardCharsets.UTF_8));
    }

    /** java.io's file system, whose field was renamed in 21. */
    private static Field fileSystem() throws NoSuchFieldException {
        Field field;
        try {
            field = File.class.getDeclaredField("FS");
        } catch (NoSuchFieldException e) {
            field = File.class.getDeclaredField("fs");
        }
        field.setAccessible(true);
        return field;
    }

    private static void set(Field field, Object of, Object value) {
        try {
            field.set(of, value);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
