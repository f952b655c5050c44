package cellard.kernel;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Tells statements from declarations by their first tokens. It says yes only where it
 * is sure: a statement taken for something else costs time, a declaration taken for a
 * statement would cost the name that it declares.
 */
final class Statements {
    private static final Set<String> WORDS = Set.of(
            "if", "for", "while", "do", "try", "throw", "return", "break", "continue", "assert", "this", "super");

    private static final Set<String> MODIFIERS = Set.of("public", "protected", "private", "static", "final", "strictfp");

    private final String s;
    private int at;

    private Statements(String source) {
        this.s = source;
    }

    /** Whether source is a statement, or an expression that ends in a semicolon. */
    static boolean is(String source) {
        return new Statements(source).isStatement();
    }

    /**
     * Whether a statement is an expression with a semicolon: of one that is no part of a block
     * JShell would keep the value.
     */
    static boolean isCall(String source) {
        Statements s = new Statements(source);
        s.skip();
        char c = s.peek();
        return c != '{' && c != ';' && !WORDS.contains(s.word());
    }

    /** Whether source may be an expression, and what it is as an Object is what it is. */
    static boolean mayBeExpression(String source) {
        Statements s = new Statements(source);
        s.skip();
        String word = s.word();
        if (source.contains("switch") || source.contains("->") || word.isEmpty() && s.peek() == '@') {
            return false;
        }
        if (word.isEmpty() || word.equals("new")) {
            return true;
        }
        s.skip();
        while (s.peek() == '.') {
            s.at++;
            s.skip();
            s.word();
            s.skip();
        }
        // A declaration goes on with a name, with [] or with <.
        char c = s.peek();
        return !Character.isJavaIdentifierStart(c) && c != '<' && (c != '[' || s.expression()) && !MODIFIERS.contains(word)
                || s.s.startsWith("instanceof", s.at);
    }

    private boolean isStatement() {
        skip();
        if (at >= s.length()) {
            return false;
        }
        char c = s.charAt(at);
        if (c == '{' || c == ';') {
            return true;
        }
        if (c == '+' || c == '-') {
            return closed();
        }
        String word = word();
        if (word.isEmpty()) {
            return false;
        }
        if (WORDS.contains(word)) {
            return !word.equals("this") && !word.equals("super") || closed();
        }
        skip();
        if (word.equals("synchronized")) {
            return peek() == '(';
        }
        if (word.equals("new")) {
            return closed();
        }
        // name(.name)*, then what only an expression has there.
        while (peek() == '.') {
            at++;
            skip();
            if (word().isEmpty()) {
                return false;
            }
            skip();
        }
        if (peek() == ':' && !s.startsWith("::", at)) {
            return true; // a label
        }
        return expression() && closed();
    }

    /** Whether source ends in a semicolon, comments aside. */
    static boolean closes(String source) {
        return new Statements(source).closed();
    }

    /** Whether source, which is white space and comments, ends within a comment. */
    static boolean leavesCommentOpen(String source) {
        Statements s = new Statements(source + "*/;");
        s.skip();
        return s.peek() == ';' && !new Statements(source + ";").skipsTo(';');
    }

    /**
     * Where a declaration of a record names its own constructors without a modifier. JShell
     * makes what a cell declares public, and then a canonical constructor must be, too.
     */
    static List<Integer> constructors(String source) {
        Statements s = new Statements(source);
        List<Integer> found = new ArrayList<>();
        String word;
        do {
            s.skip();
            while (s.peek() == '@') {
                s.annotation();
                s.skip();
            }
            word = s.word();
        } while (MODIFIERS.contains(word));
        s.skip();
        String name = word.equals("record") ? s.word() : "";
        if (name.isEmpty()) {
            return found;
        }
        int depth = 0;
        boolean first = false; // of a member
        while (true) {
            s.skip();
            char c = s.peek();
            if (c == 0) {
                return found;
            } else if (c == '"' || c == '\'') {
                s.at = s.literal(s.at);
            } else if (c == '@') {
                s.annotation();
            } else if (Character.isJavaIdentifierStart(c)) {
                int from = s.at;
                boolean own = s.word().equals(name) && first && depth == 1;
                s.skip();
                if (own && (s.peek() == '{' || s.peek() == '(')) {
                    found.add(from);
                }
                first = false;
            } else {
                s.at++;
                depth += c == '{' || c == '(' ? 1 : c == '}' || c == ')' ? -1 : 0;
                first = depth == 1 && (c == '{' || c == '}' || c == ';');
                if (depth == 0 && c == '}') {
                    return found;
                }
            }
        }
    }

    /** Where the package clause of a file begins and ends; null where there is none. */
    static int[] packageClause(String source) {
        Statements s = new Statements(source);
        s.skip();
        int from = s.at;
        if (!s.word().equals("package")) {
            return null;
        }
        while (true) {
            s.skip();
            if (s.word().isEmpty()) {
                return null;
            }
            s.skip();
            char c = s.peek();
            s.at++;
            if (c != '.') {
                return c == ';' ? new int[] {from, s.at} : null;
            }
        }
    }

    private void annotation() {
        at++;
        skip();
        word();
        while (peek() == '.') {
            at++;
            word();
        }
        int from = at;
        skip();
        if (peek() != '(') {
            at = from;
            return;
        }
        for (int depth = 0; at < s.length(); skip()) {
            char c = s.charAt(at);
            at = c == '"' || c == '\'' ? literal(at) : at + 1;
            depth += c == '(' ? 1 : c == ')' ? -1 : 0;
            if (depth == 0) {
                return;
            }
        }
    }

    private boolean skipsTo(char c) {
        skip();
        return peek() == c;
    }

    private boolean expression() {
        char c = peek();
        char next = at + 1 < s.length() ? s.charAt(at + 1) : 0;
        if (c == '(' || c == '=' && next != '=') {
            return true;
        }
        if (c == '[') { // a[i] = x, not a[] b
            at++;
            skip();
            return peek() != ']';
        }
        if ((c == '+' || c == '-') && (next == c || next == '=')) {
            return true;
        }
        return "*/%&|^".indexOf(c) >= 0 && next == '=';
    }

    private char peek() {
        return at < s.length() ? s.charAt(at) : 0;
    }

    private String word() {
        int from = at;
        if (at < s.length() && Character.isJavaIdentifierStart(s.charAt(at))) {
            while (at < s.length() && Character.isJavaIdentifierPart(s.charAt(at))) {
                at++;
            }
        }
        return s.substring(from, at);
    }

    /** Whether the last character that counts is a semicolon. */
    private boolean closed() {
        int end = at;
        char last = 0;
        while (end < s.length()) {
            char c = s.charAt(end);
            if (c == '/' && end + 1 < s.length() && (s.charAt(end + 1) == '/' || s.charAt(end + 1) == '*')) {
                end = comment(end);
            } else if (c == '"' || c == '\'') {
                end = literal(end);
                last = c;
            } else {
                if (!Character.isWhitespace(c)) {
                    last = c;
                }
                end++;
            }
        }
        return last == ';';
    }

    /** Goes past white space and comments. */
    private void skip() {
        while (at < s.length()) {
            char c = s.charAt(at);
            if (Character.isWhitespace(c)) {
                at++;
            } else if (c == '/' && at + 1 < s.length() && (s.charAt(at + 1) == '/' || s.charAt(at + 1) == '*')) {
                at = comment(at);
            } else {
                return;
            }
        }
    }

    private int comment(int from) {
        boolean line = s.charAt(from + 1) == '/';
        int end = s.indexOf(line ? "\n" : "*/", from + 2);
        return end < 0 ? s.length() : end + (line ? 1 : 2);
    }

    private int literal(int from) {
        boolean block = s.startsWith("\"\"\"", from);
        String close = block ? "\"\"\"" : s.substring(from, from + 1);
        int end = from + close.length();
        while (end < s.length()) {
            if (s.charAt(end) == '\\') {
                end += 2;
            } else if (s.startsWith(close, end)) {
                return end + close.length();
            } else {
                end++;
            }
        }
        return s.length();
    }
}
