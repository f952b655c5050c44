package cellard.kernel;

import java.util.HashSet;
import java.util.Set;
import java.util.function.Function;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Rewrites the classes of cells so that they can be stopped: a check at each method's
 * entry, before each jump back, behind what may wait for a process and at the start of each
 * handler that names what it catches; and Guard.exit for what would end the virtual machine. Before a process is
 * started, Guard.starts is called, and a writer to a descriptor gets Guard.descriptor's.
 *
 * <p>Handlers without a type (finally, and the monitorexit of a synchronized block)
 * get none: a throw there would keep a monitor from being left. A check is one call
 * without arguments or a result, so frames and stack maps stay as they are; and so is
 * Guard.starts.
 */
final class Instrument {
    private static final String GUARD = "cellard/kernel/Guard";
    /** Where a class file keeps its major version, in bytes. */
    private static final int MAJOR = 6;

    private Instrument() {}

    static byte[] transform(byte[] code) {
        return rewrite(code, Checks::new);
    }

    /** Sends a class through a visitor. */
    static byte[] rewrite(byte[] code, Function<ClassVisitor, ClassVisitor> visitor) {
        // ASM refuses class files newer than itself, though what it reads here has not
        // changed since Java 11: it is shown a version that it knows.
        byte high = code[MAJOR];
        byte low = code[MAJOR + 1];
        int version = (high & 0xff) << 8 | low & 0xff;
        if (version > Opcodes.V17) {
            code = code.clone();
            code[MAJOR] = 0;
            code[MAJOR + 1] = (byte) Opcodes.V17;
        }
        ClassReader reader = new ClassReader(code);
        ClassWriter writer = new ClassWriter(reader, 0);
        reader.accept(visitor.apply(writer), 0);
        byte[] out = writer.toByteArray();
        out[MAJOR] = high;
        out[MAJOR + 1] = low;
        return out;
    }

    private static final class Checks extends ClassVisitor {
        Checks(ClassVisitor next) {
            super(Opcodes.ASM9, next);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
            MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
            return next == null ? null : new MethodChecks(next);
        }
    }

    private static final class MethodChecks extends MethodVisitor {
        private final Set<Label> passed = new HashSet<>();
        private final Set<Label> handlers = new HashSet<>();
        private boolean pending; // a check is due before the next instruction

        MethodChecks(MethodVisitor next) {
            super(Opcodes.ASM9, next);
        }

        @Override
        public void visitCode() {
            super.visitCode();
            pending = true;
        }

        // ASM tells of the handlers before the labels that they begin at.
        @Override
        public void visitTryCatchBlock(Label start, Label end, Label handler, String type) {
            if (type != null) {
                handlers.add(handler);
            }
            super.visitTryCatchBlock(start, end, handler, type);
        }

        @Override
        public void visitLabel(Label label) {
            // A check that is due goes before the label, where it is not part of a loop.
            flush();
            passed.add(label);
            super.visitLabel(label);
            pending = handlers.contains(label);
        }

        private void flush() {
            if (pending) {
                pending = false;
                check();
            }
        }

        private void check() {
            super.visitMethodInsn(Opcodes.INVOKESTATIC, GUARD, "check", "()V", false);
        }

        @Override
        public void visitJumpInsn(int opcode, Label label) {
            flush();
            if (passed.contains(label)) {
                check();
            }
            super.visitJumpInsn(opcode, label);
        }

        @Override
        public void visitTableSwitchInsn(int min, int max, Label fallback, Label... labels) {
            back(fallback, labels);
            super.visitTableSwitchInsn(min, max, fallback, labels);
        }

        @Override
        public void visitLookupSwitchInsn(Label fallback, int[] keys, Label[] labels) {
            back(fallback, labels);
            super.visitLookupSwitchInsn(fallback, keys, labels);
        }

        private void back(Label fallback, Label[] labels) {
            flush();
            boolean back = passed.contains(fallback);
            for (Label label : labels) {
                back |= passed.contains(label);
            }
            if (back) {
                check();
            }
        }

        @Override
        public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
            flush();
            if (isExit(owner, name, descriptor)) {
                super.visitMethodInsn(Opcodes.INVOKESTATIC, GUARD, "exit", exitDescriptor(owner), false);
                return;
            }
            if (isStart(owner, name)) {
                super.visitMethodInsn(Opcodes.INVOKESTATIC, GUARD, "starts", "()V", false);
            } else if (isWriter(owner, name, descriptor)) {
                super.visitMethodInsn(Opcodes.INVOKESTATIC, GUARD, "descriptor", "(Ljava/io/FileDescriptor;)Ljava/io/FileDescriptor;", false);
            }
            super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
            if (isWait(owner, name)) {
                check();
            }
        }

        @Override
        public void visitInvokeDynamicInsn(String name, String descriptor, Handle bootstrap, Object... arguments) {
            flush();
            for (int i = 0; i < arguments.length; i++) {
                if (!(arguments[i] instanceof Handle h)) {
                    continue;
                }
                if (isExit(h.getOwner(), h.getName(), h.getDesc())) {
                    arguments[i] = new Handle(Opcodes.H_INVOKESTATIC, GUARD, "exit", exitDescriptor(h.getOwner()), false);
                } else if (isStart(h.getOwner(), h.getName())) {
                    arguments[i] = new Handle(Opcodes.H_INVOKESTATIC, GUARD, h.getName(), startDescriptor(h), false);
                }
            }
            super.visitInvokeDynamicInsn(name, descriptor, bootstrap, arguments);
        }

        private static boolean isExit(String owner, String name, String descriptor) {
            return descriptor.equals("(I)V")
                    && (owner.equals("java/lang/System") && name.equals("exit")
                            || owner.equals("java/lang/Runtime") && (name.equals("exit") || name.equals("halt")));
        }

        private static String exitDescriptor(String owner) {
            return owner.equals("java/lang/System") ? "(I)V" : "(Ljava/lang/Runtime;I)V";
        }

        private static boolean isStart(String owner, String name) {
            return owner.equals("java/lang/ProcessBuilder") && (name.equals("start") || name.equals("startPipeline"))
                    || owner.equals("java/lang/Runtime") && name.equals("exec");
        }

        /**
         * What may have waited for a process, which has been ended if the cell is to stop: the
         * code behind it must not go on.
         */
        private static boolean isWait(String owner, String name) {
            return owner.startsWith("java/util/concurrent/") ? name.equals("get") || name.equals("join")
                    : (owner.startsWith("java/io/") || owner.startsWith("java/lang/Process")) && !name.equals("<init>");
        }

        /** A constructor whose last argument is a descriptor to write to. */
        private static boolean isWriter(String owner, String name, String descriptor) {
            return name.equals("<init>") && descriptor.equals("(Ljava/io/FileDescriptor;)V")
                    && (owner.equals("java/io/FileOutputStream") || owner.equals("java/io/FileWriter"));
        }

        private static String startDescriptor(Handle h) {
            return h.getTag() == Opcodes.H_INVOKESTATIC ? h.getDesc() : "(L" + h.getOwner() + ";" + h.getDesc().substring(1);
        }

        @Override
        public void visitInsn(int opcode) {
            flush();
            super.visitInsn(opcode);
        }

        @Override
        public void visitIntInsn(int opcode, int operand) {
            flush();
            super.visitIntInsn(opcode, operand);
        }

        @Override
        public void visitVarInsn(int opcode, int variable) {
            flush();
            super.visitVarInsn(opcode, variable);
        }

        @Override
        public void visitTypeInsn(int opcode, String type) {
            flush();
            super.visitTypeInsn(opcode, type);
        }

        @Override
        public void visitFieldInsn(int opcode, String owner, String name, String descriptor) {
            flush();
            super.visitFieldInsn(opcode, owner, name, descriptor);
        }

        @Override
        public void visitLdcInsn(Object value) {
            flush();
            super.visitLdcInsn(value);
        }

        @Override
        public void visitIincInsn(int variable, int increment) {
            flush();
            super.visitIincInsn(variable, increment);
        }

        @Override
        public void visitMultiANewArrayInsn(String descriptor, int dimensions) {
            flush();
            super.visitMultiANewArrayInsn(descriptor, dimensions);
        }
    }
}
