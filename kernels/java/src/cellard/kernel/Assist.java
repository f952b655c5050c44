package cellard.kernel;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import jdk.jshell.Snippet;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.SourceCodeAnalysis.Completeness;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;
import jdk.jshell.SourceCodeAnalysis.Documentation;
import jdk.jshell.SourceCodeAnalysis.Suggestion;

/** Answers about code that is not run: completions, documentation, completeness. */
final class Assist {
    /** The most completions of an answer, and characters of a documentation. */
    private static final int MATCHES = 1000;
    private static final int TEXT = 64 << 10;

    private final SourceCodeAnalysis analysis;

    Assist(SourceCodeAnalysis analysis) {
        this.analysis = analysis;
    }

    /** Positions count code points. */
    void complete(String code, int cursor, Wire.Builder out) {
        int end = offset(code, cursor);
        int from = snippet(code, end);
        int[] anchor = {end - from};
        List<Suggestion> suggestions = analysis.completionSuggestions(code.substring(from), end - from, anchor);
        Set<String> matches = new LinkedHashSet<>();
        for (Suggestion s : suggestions) {
            if (matches.size() < MATCHES) {
                matches.add(s.continuation());
            }
        }
        out.small(code.codePointCount(0, from + anchor[0])).small(cursor).small(matches.size());
        matches.forEach(out::text);
    }

    void inspect(String code, int cursor, int detail, Wire.Builder out) {
        int end = offset(code, cursor);
        int from = snippet(code, end);
        while (end < code.length() && Character.isJavaIdentifierPart(code.charAt(end))) {
            end++;
        }
        String part = code.substring(from, end);
        List<Documentation> found = analysis.documentation(part, part.length(), detail > 0);
        if (found.isEmpty()) { // a method is found by what it is called with
            found = analysis.documentation(part + "(", part.length() + 1, detail > 0);
        }
        String text = found.stream()
                .map(d -> d.javadoc() == null || d.javadoc().isBlank() ? d.signature() : d.signature() + "\n" + d.javadoc())
                .distinct()
                .collect(Collectors.joining("\n"));
        out.text(text.length() > TEXT ? text.substring(0, TEXT) : text);
    }

    /** complete, incomplete or invalid; and what the next line begins with. */
    void isComplete(String code, Wire.Builder out) {
        String rest = code;
        while (true) {
            CompletionInfo info = analysis.analyzeCompletion(rest);
            Completeness c = info.completeness();
            if (c == Completeness.DEFINITELY_INCOMPLETE) {
                out.text("incomplete").text(indent(code));
                return;
            }
            if (c == Completeness.UNKNOWN) {
                out.text("invalid").text("");
                return;
            }
            String remaining = info.remaining() == null ? "" : info.remaining();
            if (c != Completeness.EMPTY && isErroneous(rest.substring(0, Math.max(0, rest.length() - remaining.length())))) {
                boolean more = c == Completeness.CONSIDERED_INCOMPLETE;
                out.text(more ? "incomplete" : "invalid").text(more ? indent(code) : "");
                return;
            }
            if (c == Completeness.EMPTY || remaining.isBlank() || remaining.length() >= rest.length()) {
                out.text("complete").text("");
                return;
            }
            rest = remaining;
        }
    }

    private boolean isErroneous(String source) {
        return analysis.sourceToSnippets(source).stream().anyMatch(s -> s.kind() == Snippet.Kind.ERRONEOUS);
    }

    private static String indent(String code) {
        String line = code.substring(code.lastIndexOf('\n') + 1);
        int end = 0;
        while (end < line.length() && Character.isWhitespace(line.charAt(end))) {
            end++;
        }
        return line.substring(0, end) + (line.stripTrailing().endsWith("{") ? "    " : "");
    }

    private static int offset(String code, int cursor) {
        int count = code.codePointCount(0, code.length());
        return code.offsetByCodePoints(0, Math.max(0, Math.min(cursor, count)));
    }

    /** Where the snippet begins that a position is in. */
    private int snippet(String code, int position) {
        int at = 0;
        while (true) {
            String rest = code.substring(at);
            CompletionInfo info = analysis.analyzeCompletion(rest);
            String remaining = info.remaining() == null ? "" : info.remaining();
            int next = code.length() - remaining.length();
            if (info.completeness() == Completeness.EMPTY || next <= at || next >= position || remaining.isEmpty()) {
                return at;
            }
            at = next;
        }
    }
}
