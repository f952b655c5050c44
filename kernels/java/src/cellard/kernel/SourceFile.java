package cellard.kernel;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import jdk.jshell.JShell;
import jdk.jshell.MethodSnippet;
import jdk.jshell.Snippet;
import jdk.jshell.Snippet.Kind;
import jdk.jshell.TypeDeclSnippet;

/**
 * A cell that is a source file as `java FILE` takes one: it declares, and nothing of it would
 * run but for its main.
 */
final class SourceFile {
    private static final Set<Kind> TYPES = EnumSet.of(Kind.IMPORT, Kind.TYPE_DECL);
    private static final Set<Kind> COMPACT = EnumSet.of(Kind.IMPORT, Kind.TYPE_DECL, Kind.METHOD, Kind.VAR);

    /** From here on a main may be an instance's, without arguments, or in no class (JEP 512). */
    private static final boolean FREE = Runtime.version().feature() >= 25;

    private static final Pattern MAIN = Pattern.compile("\\bvoid\\s+main\\s*\\(");
    private static final String ARGUMENTS = "(new String[0])";

    private SourceFile() {}

    /** A cell without what only a file has: a line for the system, a package. Places stay. */
    static String cell(String code) {
        int end = code.startsWith("#!") ? (code + "\n").indexOf('\n') : 0;
        code = blank(code, 0, end);
        int[] clause = Statements.packageClause(code);
        return clause == null ? code : blank(code, clause[0], clause[1]);
    }

    private static String blank(String code, int from, int to) {
        return code.substring(0, from) + code.substring(from, to).replaceAll("\\V", " ") + code.substring(to);
    }

    /**
     * What may call the main of a cell that made all these, the likeliest first: what can't be
     * compiled is not it. Of several classes it is the first that has one.
     */
    static List<String> calls(JShell shell, List<Snippet> made) {
        List<String> calls = new ArrayList<>();
        for (Snippet snippet : made) {
            if (shell.status(snippet) != Snippet.Status.VALID) { // it waits for another cell's
                return List.of();
            }
            if (FREE && snippet instanceof MethodSnippet && ((MethodSnippet) snippet).name().equals("main")) {
                String parameters = ((MethodSnippet) snippet).parameterTypes();
                if (parameters.isEmpty()) {
                    calls.add("main()");
                } else if (parameters.equals("String[]") || parameters.equals("String...")) {
                    calls.add(0, "main" + ARGUMENTS);
                }
            }
        }
        if (!calls.isEmpty()) {
            return made.stream().allMatch(s -> COMPACT.contains(s.kind()) && !Session.temporary(s)) ? calls : List.of();
        }
        for (Snippet snippet : made) {
            if (!TYPES.contains(snippet.kind())) {
                return List.of();
            }
            if (snippet instanceof TypeDeclSnippet && MAIN.matcher(snippet.source()).find()) {
                String name = ((TypeDeclSnippet) snippet).name();
                calls.add(name + ".main" + ARGUMENTS);
                if (FREE) {
                    calls.addAll(List.of("new " + name + "().main" + ARGUMENTS, name + ".main()", "new " + name + "().main()"));
                }
            }
        }
        return calls;
    }
}
