package cellard.kernel;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import jdk.jshell.DeclarationSnippet;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.UnresolvedReferenceException;

/** What went wrong in a cell, in the words of its user: names, lines and columns of cells. */
final class Errors {
    /** The most frames of one exception that are told: a stack overflow has a thousand. */
    private static final int FRAMES = 50;
    private static final int CAUSES = 10;
    /** The most characters of a message. */
    private static final int TEXT = 64 << 10;

    private final JShell shell;
    private final Map<String, Session.Origin> origins;

    Errors(JShell shell, Map<String, Session.Origin> origins) {
        this.shell = shell;
        this.origins = origins;
    }

    static final class Failure {
        final String name;
        final String value;
        final List<String> trace;

        Failure(String name, String value, List<String> trace) {
            this.name = cut(name);
            this.value = cut(value);
            this.trace = trace.stream().map(Errors::cut).collect(Collectors.toList());
        }
    }

    private static String cut(String text) {
        return text == null || text.length() <= TEXT ? text
                : text.substring(0, TEXT) + "… (" + text.length() + " characters in all)";
    }

    static Failure compile(String message) {
        return new Failure("CompileError", message, List.of(message));
    }

    static Failure exit(int status) {
        return new Failure("ExitStatus", Integer.toString(status),
                List.of("System.exit(" + status + ") ended the cell; the session goes on"));
    }

    /**
     * What is wrong with the syntax of a piece; null if the parser takes it after all. What
     * the parser rejects is told by an evaluation, of which nothing runs.
     */
    Failure syntax(Splitter.Piece piece, String code) {
        if (Statements.leavesCommentOpen(piece.source)) {
            return compile("unclosed comment: it has no */");
        }
        for (Snippet snippet : shell.sourceCodeAnalysis().sourceToSnippets(piece.source)) {
            if (snippet.kind() == Snippet.Kind.ERRONEOUS) {
                for (SnippetEvent event : shell.eval(piece.source)) {
                    Failure failure = of(event, piece, code);
                    if (failure != null) {
                        return failure;
                    }
                }
            }
        }
        return null;
    }

    /** What an evaluation failed with; null if it did not. */
    Failure of(SnippetEvent event, Splitter.Piece piece, String code) {
        if (event.status() == Snippet.Status.REJECTED) {
            return compile(shell.diagnostics(event.snippet()).collect(Collectors.toList()), piece, code);
        }
        JShellException e = event.exception();
        return e == null ? null : exception(e);
    }

    /**
     * What a cell left that can't be used: a variable of a type that is not there is an
     * error; a method or a class may wait for what a later cell declares, and says so.
     */
    Failure unresolved(List<Snippet> made, String code, Output output, Cell cell) throws IOException {
        for (Snippet snippet : made) {
            Snippet.Status status = shell.status(snippet);
            if (status != Snippet.Status.RECOVERABLE_DEFINED && status != Snippet.Status.RECOVERABLE_NOT_DEFINED) {
                continue;
            }
            DeclarationSnippet declaration = (DeclarationSnippet) snippet;
            String missing = missing(declaration);
            if (snippet.kind() == Snippet.Kind.VAR) {
                List<Diag> diagnostics = shell.diagnostics(snippet).collect(Collectors.toList());
                shell.drop(snippet);
                Session.Origin origin = origins.get(snippet.id());
                Splitter.Piece piece = new Splitter.Piece(snippet.source(), origin.offset, false, false, false);
                if (diagnostics.isEmpty()) {
                    return compile("cannot find symbol: " + missing);
                }
                return compile(diagnostics, piece, code);
            }
            String name = snippet.kind() == Snippet.Kind.METHOD ? declaration.name() + "()" : declaration.name();
            output.note(cell, "note: " + name + " can't be used until " + missing + " is declared\n");
        }
        return null;
    }

    private String missing(DeclarationSnippet snippet) {
        String names = shell.unresolvedDependencies(snippet).collect(Collectors.joining(", "));
        if (names.isEmpty()) {
            names = shell.diagnostics(snippet).map(d -> d.getMessage(Locale.ENGLISH)).findFirst().orElse("what it names");
        }
        return names;
    }

    // Compile errors.

    private Failure compile(List<Diag> diagnostics, Splitter.Piece piece, String code) {
        List<Diag> errors = diagnostics.stream().filter(Diag::isError).collect(Collectors.toList());
        if (errors.isEmpty()) {
            return compile("the code can't be compiled");
        }
        String value = null;
        List<String> trace = new ArrayList<>();
        for (Diag d : errors) {
            String message = message(d);
            long position = d.getPosition();
            if (position >= 0) {
                int at = Math.max(0, Math.min(piece.place((int) position), code.length()));
                int start = code.lastIndexOf('\n', at - 1) + 1;
                int end = code.indexOf('\n', at);
                String line = code.substring(start, end < 0 ? code.length() : end);
                long number = code.substring(0, at).chars().filter(c -> c == '\n').count() + 1;
                int column = code.codePointCount(start, at) + 1;
                trace.add("line " + number + ", column " + column + ": " + message);
                if (line.length() <= 500) {
                    trace.add("    " + line);
                    trace.add("    " + line.substring(0, at - start).replaceAll("[^\t]", " ") + "^");
                }
                message += " (line " + number + ", column " + column + ")";
            } else {
                trace.add(message);
            }
            if (value == null) {
                value = message;
            }
        }
        return new Failure("CompileError", value, trace);
    }

    /** javac's message without the lines that name classes of JShell's. */
    private static String message(Diag d) {
        StringBuilder out = new StringBuilder();
        for (String line : d.getMessage(Locale.ENGLISH).strip().split("\n")) {
            String text = line.strip();
            if (text.startsWith("symbol:")) {
                out.append(": ").append(text.substring("symbol:".length()).strip());
            } else if (!text.startsWith("location:")) {
                out.append(out.length() == 0 ? "" : "\n").append(line);
            }
        }
        return plain(out.toString());
    }

    /** A text with the user's classes by the names that they have in cells. */
    static String plain(String text) {
        return text == null || !text.contains("REPL.") ? text : text.replaceAll("REPL\\.\\$JShell\\$\\w+?[.$]", "");
    }

    // Exceptions.

    private Failure exception(JShellException e) {
        List<String> trace = new ArrayList<>();
        String prefix = "";
        String name = null;
        String value = null;
        Throwable current = e;
        for (int depth = 0; current != null && depth <= CAUSES; depth++) {
            String type = typeOf(current);
            String message = messageOf(current);
            if (depth == 0) {
                name = type;
                value = message == null ? "" : message;
            }
            trace.add(prefix + type + (message == null ? "" : ": " + message));
            frames(current.getStackTrace(), trace);
            prefix = "Caused by: ";
            current = current.getCause() == current ? null : current.getCause();
        }
        return new Failure(name, value, trace);
    }

    private static String typeOf(Throwable e) {
        if (e instanceof EvalException) {
            String type = ((EvalException) e).getExceptionClassName();
            return type.equals("cellard.StdinNotImplementedError") ? "StdinNotImplementedError" : name(type);
        }
        return e.getClass().getSimpleName(); // UnresolvedReferenceException
    }

    /** A class of the user's by the name that it has in a cell. */
    private static String name(String className) {
        if (!className.startsWith("REPL.")) {
            return className;
        }
        int at = className.indexOf('$', className.indexOf('$', 6) + 1);
        return at < 0 ? className : className.substring(at + 1).replace('$', '.');
    }

    private String messageOf(Throwable e) {
        if (e instanceof UnresolvedReferenceException) {
            DeclarationSnippet snippet = ((UnresolvedReferenceException) e).getSnippet();
            String what = snippet.kind() == Snippet.Kind.METHOD ? snippet.name() + "()" : snippet.name();
            return what + " can't be used until " + missing(snippet) + " is declared";
        }
        return plain(e.getMessage());
    }

    private void frames(StackTraceElement[] stack, List<String> trace) {
        List<String> lines = new ArrayList<>();
        int cells = stack.length; // where the last frame of a cell is
        while (cells > 0 && !ofCell(stack[cells - 1])) {
            cells--;
        }
        for (int i = 0; i < stack.length; i++) {
            StackTraceElement frame = stack[i];
            if (!ofCell(frame)) {
                if (ours(frame)) {
                    if (i >= cells) {
                        break; // from here on it is the kernel
                    }
                    continue; // what a cell has called: display, a check, its output
                }
                lines.add("\tat " + plain(frame.toString()));
                continue;
            }
            Session.Origin origin = origins.get(frame.getFileName().substring(1));
            String where = origin == null ? "?" : "In[" + origin.count + "]:" + origin.line(Math.max(1, frame.getLineNumber()));
            String method = frame.getMethodName() == null || frame.getMethodName().isEmpty() ? "" : frame.getMethodName();
            String type = frame.getClassName() == null || frame.getClassName().isEmpty() ? "" : frame.getClassName() + ".";
            lines.add("\tat " + (method.isEmpty() ? "" : type + method + " ") + "(" + where + ")");
        }
        // Reflection is how the kernel called the cell: what is below the cell's last frame.
        int last = lines.size();
        while (last > 0 && !lines.get(last - 1).contains("(In[")) {
            last--;
        }
        if (last > 0) {
            lines = lines.subList(0, last);
        }
        lines = folded(lines);
        if (lines.size() > FRAMES) {
            trace.addAll(lines.subList(0, FRAMES / 2));
            trace.add("\t… " + (lines.size() - FRAMES) + " more");
            trace.addAll(lines.subList(lines.size() - FRAMES / 2, lines.size()));
            return;
        }
        trace.addAll(lines);
    }

    /** A run of one line as the line and how many more there are. */
    private static List<String> folded(List<String> lines) {
        List<String> out = new ArrayList<>();
        for (int i = 0; i < lines.size(); ) {
            int same = i + 1;
            while (same < lines.size() && lines.get(same).equals(lines.get(i))) {
                same++;
            }
            out.add(lines.get(i));
            if (same - i > 3) {
                out.add("\t… " + (same - i - 1) + " times more");
                i = same;
            } else {
                i++;
            }
        }
        return out;
    }

    private static boolean ofCell(StackTraceElement frame) {
        return frame.getFileName() != null && frame.getFileName().startsWith("#");
    }

    private static boolean ours(StackTraceElement frame) {
        return frame.getClassName().startsWith("cellard.");
    }
}
