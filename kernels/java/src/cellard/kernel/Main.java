package cellard.kernel;

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;

/** The Java side of the kernel: takes requests from the process that started it. */
public final class Main {
    private final Wire wire;
    private final Calls calls;
    private final Output output;
    private final LinkedBlockingQueue<Request> requests = new LinkedBlockingQueue<>();
    private volatile Cell latest;
    private PrintStream out;
    private PrintStream err;
    private InputStream in;

    private interface Request {
        void run() throws IOException;
    }

    private Session session;
    private Assist assist;
    private Environment environment;

    private Main(Wire wire) {
        this.wire = wire;
        this.calls = new Calls(wire);
        this.output = new Output(wire);
    }

    /** Starts with the paths that requests come from and answers go to. */
    public static void main(String[] args) throws Exception {
        Wire wire = new Wire(new FileInputStream(args[0]), new FileOutputStream(args[1]));
        new Main(wire).run();
    }

    private void run() throws IOException {
        Thread.currentThread().setName("cellard session");
        out = output.stream('o');
        err = output.stream('e');
        in = new Input(calls, output);
        System.setIn(in);
        putStreams();
        Thread.setDefaultUncaughtExceptionHandler((thread, e) -> {
            if (!(e instanceof StopCell)) {
                System.err.print("Exception in thread \"" + thread.getName() + "\" ");
                e.printStackTrace();
            }
        });
        Stopper.start(calls);
        Thread reader = new Thread(this::read, "cellard reader");
        reader.setDaemon(true);
        reader.start();
        session = new Session(output);
        assist = new Assist(session.shell().sourceCodeAnalysis());
        environment = new Environment(calls);
        Stopper.stops(session);
        // Only now: what the start takes is not a cell's time.
        wire.send(new Wire.Builder('V').text(System.getProperty("java.version")).text(System.getProperty("java.vm.name")));
        while (true) {
            try {
                Request request = requests.take();
                Thread.interrupted();
                request.run();
            } catch (InterruptedException e) {
                // a cell's doing, which looks for threads
            } catch (Throwable e) { // the other end is gone, or there is no memory for an answer
                halt(e);
            }
        }
    }

    /**
     * Puts the streams where cells find them, also where one has put its own: what the
     * next prints is not to go there. Input that a cell has made may be read by the next.
     */
    private void putStreams() {
        if (System.out != out) {
            System.setOut(out);
        }
        if (System.err != err) {
            System.setErr(err);
        }
        if (System.in == null) {
            System.setIn(in);
        }
    }

    private void read() {
        try {
            Wire.Frame frame;
            while ((frame = wire.receive()) != null) {
                take(frame);
            }
            // The other process asks for the end, or has ended. Shutdown hooks run: that
            // process, and the system, see to it that they come to an end.
            System.exit(0);
        } catch (Throwable e) {
            halt(e);
        }
    }

    private static void halt(Throwable e) {
        try {
            new FileOutputStream(java.io.FileDescriptor.err).write(("cellard: the kernel's Java ends: " + e + "\n").getBytes());
        } catch (IOException ignored) {
            // nobody is left to tell
        }
        Runtime.getRuntime().halt(1);
    }

    private void take(Wire.Frame frame) throws IOException {
        switch (frame.type) {
            case 'X' -> {
                Cell cell = new Cell(frame.number(), frame.small(), frame.flag(), frame.flag());
                String code = frame.text();
                String cwd = frame.text();
                Map<String, String> env = new HashMap<>();
                for (int n = frame.small(); n > 0; n--) {
                    env.put(frame.text(), frame.text());
                }
                latest = cell;
                requests.add(() -> execute(cell, code, env, cwd));
            }
            case 'S' -> {
                long call = frame.number();
                long id = frame.number();
                Cell cell = latest;
                if (cell != null && cell.id == id) {
                    cell.asked = call;
                    Stopper.stop(cell);
                }
            }
            case 'A' -> calls.answer(frame.number(), frame.flag(), frame.text());
            case 'C' -> {
                long id = frame.number();
                int cursor = frame.small();
                String code = frame.text();
                answer(id, out -> assist.complete(code, cursor, out), out -> out.small(cursor).small(cursor).small(0));
            }
            case 'I' -> {
                long id = frame.number();
                int cursor = frame.small();
                int detail = frame.small();
                String code = frame.text();
                answer(id, out -> assist.inspect(code, cursor, detail, out), out -> out.text(""));
            }
            case 'Q' -> {
                long id = frame.number();
                String code = frame.text();
                answer(id, out -> assist.isComplete(code, out), out -> out.text("unknown").text(""));
            }
            case 'V' -> answer(frame.number(), out -> session.variables().list(out), out -> out.small(0).small(0));
            default -> throw new IOException("a frame of type " + (int) frame.type);
        }
    }

    /** Queues an answer; where the compiler fails over the code, what stands for none. */
    private void answer(long id, Calls.Fields fields, Calls.Fields none) {
        requests.add(() -> {
            Wire.Builder out = new Wire.Builder('B').number(id);
            try {
                fields.add(out);
            } catch (RuntimeException | Error e) {
                out = new Wire.Builder('B').number(id);
                none.add(out);
            }
            wire.send(out);
        });
    }

    private void execute(Cell cell, String code, Map<String, String> env, String cwd) throws IOException {
        output.runs(cell);
        Errors.Failure failure;
        String refused = cell.dead ? null : environment.apply(env, cwd);
        if (refused != null) {
            failure = new Errors.Failure("Unsupported", refused, List.of(refused));
        } else {
            try {
                failure = cell.dead ? null : session.execute(cell, code);
            } finally {
                environment.restore();
                putStreams();
                output.runs(null);
            }
        }
        Wire.Builder out = new Wire.Builder('Z').number(cell.id).flag(cell.dead && cell.exit == null).flag(failure != null);
        if (failure != null) {
            out.text(failure.name).text(failure.value).small(failure.trace.size());
            failure.trace.forEach(out::text);
        }
        wire.send(out);
    }

    // What Notebook needs.

    private static Main instance;

    {
        instance = this;
    }

    static Output output() {
        return instance.output;
    }

    static Calls calls() {
        return instance.calls;
    }
}
