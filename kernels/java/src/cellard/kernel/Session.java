package cellard.kernel;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import jdk.jshell.JShell;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.VarSnippet;

/** The user's session: JShell's state, and the thread that cells run on. */
final class Session {
    /** What JShell's own tool imports, and what this kernel gives cells. */
    private static final List<String> IMPORTS = List.of(
            "java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*",
            "java.util.function.*", "java.util.prefs.*", "java.util.regex.*", "java.util.stream.*",
            "static cellard.Notebook.*");

    private final Output output;
    private final Loader loader = new Loader();
    private final JShell shell;
    private final Errors errors;
    private final Variables variables;
    private final Map<String, Origin> origins = new HashMap<>();

    private volatile CellThread thread = new CellThread(loader);
    private Cell cell;
    private boolean asked; // whether the value of what runs is the cell's
    private Values.Shown shown;

    /** Where a snippet came from. */
    static final class Origin {
        final int count; // of the cell
        final int offset;
        private final int line; // that the snippet begins on, from 0

        Origin(Cell cell, String code, Splitter.Piece piece) {
            this.count = cell.count;
            this.offset = piece.offset;
            int from = piece.block ? piece.offset + 1 : piece.offset;
            this.line = (int) code.substring(0, from).chars().filter(c -> c == '\n').count();
        }

        /** The line in the cell of a line in the snippet; both count from 1. */
        int line(int number) {
            return line + number;
        }
    }

    Session(Output output) {
        this.output = output;
        Engine engine = new Engine(this, loader);
        shell = JShell.builder()
                .executionEngine(Engine.provider(engine), Map.of())
                .compilerOptions("-proc:none", "-Xlint:-options", "-classpath", System.getProperty("java.class.path"))
                .build();
        errors = new Errors(shell, origins);
        variables = new Variables(shell, engine);
        for (String name : IMPORTS) {
            shell.eval("import " + name + ";");
        }
    }

    JShell shell() {
        return shell;
    }

    Variables variables() {
        return variables;
    }

    /** Runs a cell to its end. The error is null where there was none. */
    Errors.Failure execute(Cell cell, String code) throws IOException {
        this.cell = cell;
        this.shown = null;
        loader.loadsFor(cell);
        Errors.Failure failure;
        try {
            failure = evaluate(SourceFile.cell(code));
        } catch (StackOverflowError e) {
            failure = Errors.compile("the code is nested too deeply for the compiler");
        } catch (OutOfMemoryError e) {
            failure = new Errors.Failure(e.getClass().getName(), String.valueOf(e.getMessage()), List.of());
        } catch (RuntimeException | Error e) { // javac and JShell have their own bugs
            StringWriter trace = new StringWriter();
            e.printStackTrace(new PrintWriter(trace));
            failure = new Errors.Failure("CompileError", "the compiler failed: " + e, List.of(trace.toString().split("\n")));
        }
        if (cell.dead) {
            Stopper.await(cell);
        }
        if (thread.isLeft()) {
            thread = new CellThread(loader);
        }
        if (cell.exit != null) {
            failure = cell.exit == 0 ? null : Errors.exit(cell.exit);
        }
        if (failure == null && !cell.dead && shown != null) {
            try {
                output.result(cell, shown);
            } catch (IllegalArgumentException e) { // it is too large
                failure = new Errors.Failure(e.getClass().getName(), e.getMessage(), List.of());
            }
        }
        this.cell = null;
        this.shown = null;
        return failure;
    }

    private Errors.Failure evaluate(String code) throws IOException {
        List<Splitter.Piece> pieces = Splitter.split(shell.sourceCodeAnalysis(), code, cell);
        if (pieces.isEmpty() || cell.dead) {
            return null;
        }
        Splitter.Piece last = pieces.get(pieces.size() - 1);
        if (last.broken) { // before anything has run
            Errors.Failure failure = errors.syntax(last, code);
            if (failure != null) {
                return failure;
            }
        }
        List<Snippet> made = new ArrayList<>();
        for (Splitter.Piece piece : pieces) {
            if (cell.dead) {
                return null;
            }
            asked = piece == last && !cell.silent && Splitter.asks(code, piece);
            List<SnippetEvent> events = asked ? value(code, piece) : shell.eval(piece.source);
            for (SnippetEvent event : events) {
                if (event.causeSnippet() != null) {
                    continue;
                }
                Snippet snippet = event.snippet();
                origins.put(snippet.id(), new Origin(cell, code, piece));
                Errors.Failure failure = cell.dead ? null : errors.of(event, piece, code);
                tidy(event, failure);
                if (failure != null) {
                    return failure;
                }
                made.add(snippet);
                if (asked && shown == null && (temporary(snippet) || snippet.kind() == Snippet.Kind.EXPRESSION)) {
                    shown = Values.nothing();
                }
            }
        }
        Errors.Failure failure = cell.dead ? null : errors.unresolved(made, code, output, cell);
        return failure == null ? main(made, code) : failure;
    }

    /** Calls the main of a cell that is a source file. */
    private Errors.Failure main(List<Snippet> made, String code) {
        asked = false;
        for (String call : SourceFile.calls(shell, made)) {
            if (cell.dead) {
                return null;
            }
            for (SnippetEvent event : shell.eval("{" + call + ";\n}")) {
                if (event.causeSnippet() == null && event.status() != Snippet.Status.REJECTED) {
                    return cell.dead ? null : errors.of(event, null, code);
                }
            }
        }
        return null;
    }

    /** Evaluates what the value of the cell may come from. */
    private List<SnippetEvent> value(String code, Splitter.Piece piece) {
        String variable = Splitter.variable(code, piece);
        if (variable != null) {
            List<SnippetEvent> events = shell.eval(variable);
            if (events.size() == 1 && events.get(0).status() == Snippet.Status.VALID) {
                return events;
            }
            for (SnippetEvent event : events) { // nothing of it has run
                if (shell.status(event.snippet()).isActive()) {
                    shell.drop(event.snippet());
                }
            }
        }
        return shell.eval(piece.source);
    }

    /** Drops what JShell keeps and nobody named, and what came to nothing. */
    private void tidy(SnippetEvent event, Errors.Failure failure) {
        Snippet snippet = event.snippet();
        boolean halfMade = failure != null
                && snippet.kind() == Snippet.Kind.VAR
                && event.previousStatus() == Snippet.Status.NONEXISTENT;
        if ((temporary(snippet) || halfMade) && shell.status(snippet).isActive()) {
            shell.drop(snippet);
        }
    }

    /** Whether it has a value that nobody named. */
    static boolean temporary(Snippet snippet) {
        return snippet.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND
                || snippet.kind() == Snippet.Kind.VAR && ((VarSnippet) snippet).name().equals(Splitter.VALUE);
    }

    // What follows is called while JShell evaluates.

    /** Runs work on the cells' thread. */
    void run(Callable<Object> work) throws Throwable {
        Cell current = cell;
        if (current == null) {
            throw new IllegalStateException("no cell runs");
        }
        if (current.dead) {
            throw StopCell.INSTANCE;
        }
        thread.run(current, work);
    }

    /** Takes the value of what has run; on the cells' thread. */
    void finished(Object value) {
        if (asked && value != null) {
            shown = Values.show(value);
        }
    }

    /** Whether a cell's code is on the cells' thread. */
    boolean works(Cell cell) {
        CellThread current = thread;
        return current.cell == cell && !current.isLeft();
    }

    /** The system's number for the cells' thread; 0 where it is not known. */
    int nativeThread() {
        return thread.tid;
    }

    /** Gives up on what a cell does on the cells' thread. */
    void leave(Cell cell) {
        CellThread current = thread;
        if (current.cell == cell) {
            current.leave();
        }
    }
}
