package cellard.kernel;

import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.List;

/** What the bytecode of cells calls: see Instrument, which puts the calls there. */
public final class Guard {
    /** Tells that some cell which is to stop may still have a thread. */
    static volatile boolean armed;

    private Guard() {}

    /** Stands at method entries, before jumps back, and at the start of handlers. */
    public static void check() {
        if (armed) {
            Threads.endIfDead();
        }
    }

    /** Stands for System.exit: ends the cell, not the virtual machine. */
    public static void exit(int status) {
        Cell cell = Threads.owner();
        if (cell != null && !cell.dead) {
            cell.exit = status;
            Stopper.stop(cell);
        }
        throw StopCell.INSTANCE;
    }

    /** Stands for Runtime.exit and Runtime.halt. */
    public static void exit(Runtime runtime, int status) {
        if (runtime == null) {
            throw new NullPointerException();
        }
        exit(status);
    }

    /**
     * Stands before each constructor of a writer to a descriptor. What it closes is its own:
     * closing the process's would leave the children of all later cells without an output.
     */
    public static FileDescriptor descriptor(FileDescriptor named) {
        if (named != FileDescriptor.out && named != FileDescriptor.err) {
            return named;
        }
        try {
            return new FileOutputStream(named == FileDescriptor.out ? "/proc/self/fd/1" : "/proc/self/fd/2").getFD();
        } catch (IOException e) {
            return named;
        }
    }

    /** Stands before each call that starts a process, see Calls.settle. */
    public static void starts() {
        Cell cell = Main.output().current();
        if (cell != null) {
            Main.calls().settle(cell);
        }
    }

    // What follows stands for references to the methods that start processes.

    public static Process start(ProcessBuilder builder) throws IOException {
        starts();
        return builder.start();
    }

    public static List<Process> startPipeline(List<ProcessBuilder> builders) throws IOException {
        starts();
        return ProcessBuilder.startPipeline(builders);
    }

    public static Process exec(Runtime runtime, String command) throws IOException {
        starts();
        return runtime.exec(command);
    }

    public static Process exec(Runtime runtime, String command, String[] env) throws IOException {
        starts();
        return runtime.exec(command, env);
    }

    public static Process exec(Runtime runtime, String command, String[] env, File dir) throws IOException {
        starts();
        return runtime.exec(command, env, dir);
    }

    public static Process exec(Runtime runtime, String[] command) throws IOException {
        starts();
        return runtime.exec(command);
    }

    public static Process exec(Runtime runtime, String[] command, String[] env) throws IOException {
        starts();
        return runtime.exec(command, env);
    }

    public static Process exec(Runtime runtime, String[] command, String[] env, File dir) throws IOException {
        starts();
        return runtime.exec(command, env, dir);
    }
}
