package cellard.kernel;

import java.util.ArrayList;
import java.util.List;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;

/**
 * Takes a cell apart into what JShell evaluates one at a time. Each takes a run of the
 * compiler, so statements that follow one another become one block.
 */
final class Splitter {
    /** A piece of a cell: as it stands there, or as a block. */
    static final class Piece {
        final String source;
        /** Where the source begins in the cell; a block's is one less, for its brace. */
        final int offset;
        final boolean block;
        /** It is known to be a statement, or an expression whose value nobody asked for. */
        final boolean statement;
        /** The syntax may be such that it can't be run. */
        final boolean broken;
        /** Where the cell has not what the source has: OPEN before a record's constructor. */
        private final List<Integer> opened;

        Piece(String source, int offset, boolean block, boolean statement, boolean broken) {
            this.opened = block || statement || broken ? List.of() : Statements.constructors(source);
            StringBuilder open = new StringBuilder(source);
            for (int i = opened.size() - 1; i >= 0; i--) {
                open.insert(opened.get(i), OPEN);
            }
            this.source = open.toString();
            this.offset = offset;
            this.block = block;
            this.statement = statement;
            this.broken = broken;
        }

        /** The place in the cell of a place in the source. */
        int place(int at) {
            int more = 0;
            for (int from : opened) {
                more += Math.max(0, Math.min(OPEN.length(), at - more - from));
            }
            return at - more + offset;
        }
    }

    private static final String OPEN = "public ";

    private Splitter() {}

    /** Whether the last piece's value is the cell's: an expression left open. */
    static boolean asks(String code, Piece last) {
        return !last.statement && !Statements.closes(code.substring(Math.max(0, last.offset)));
    }

    /** The variable that has the value of a cell's last expression until it is shown. */
    static final String VALUE = "cellard$value";

    /**
     * An expression as the first value of a variable; null for what may be none. JShell finds
     * out the type of an expression first, by a run of the compiler, and keeps the value
     * for good. A switch has another type where it is an Object.
     */
    static String variable(String code, Piece last) {
        String source = code.substring(Math.max(0, last.offset));
        if (last.block || last.broken || !Statements.mayBeExpression(source)) {
            return null;
        }
        return "Object " + VALUE + " = (" + source + "\n);"; // past a comment
    }

    /** Splits a cell; as far as it has come, if it is to stop. */
    static List<Piece> split(SourceCodeAnalysis analysis, String code, Cell cell) {
        List<Piece> out = new ArrayList<>();
        int from = 0; // of the statements that wait to become a block
        int count = 0;
        int at = 0;
        while (at < code.length() && !cell.dead) {
            if (Character.isWhitespace(code.charAt(at))) {
                at++; // JShell counts lines from the first that has something
                continue;
            }
            String rest = code.substring(at);
            CompletionInfo info = analysis.analyzeCompletion(rest);
            if (info.completeness() == SourceCodeAnalysis.Completeness.EMPTY) {
                if (Statements.leavesCommentOpen(rest)) {
                    out.add(new Piece(rest, at, false, false, true));
                }
                break;
            }
            int length = info.remaining() == null ? rest.length() : rest.length() - info.remaining().length();
            if (length <= 0) {
                length = rest.length();
            }
            boolean broken = info.completeness() == SourceCodeAnalysis.Completeness.DEFINITELY_INCOMPLETE
                    || info.completeness() == SourceCodeAnalysis.Completeness.CONSIDERED_INCOMPLETE
                    || info.completeness() == SourceCodeAnalysis.Completeness.UNKNOWN;
            int end = broken ? code.length() : at + length;
            String source = code.substring(at, end);
            if (info.completeness() == SourceCodeAnalysis.Completeness.COMPLETE_WITH_SEMI) {
                source += "\n;"; // past a comment
            }
            if (!broken && Statements.is(source)) {
                if (count == 0) {
                    from = at;
                }
                count++;
                at = end;
                continue;
            }
            if (count > 0) {
                out.add(block(code, from, at, count));
                count = 0;
            }
            out.add(new Piece(source, at, false, false, broken));
            at = end;
        }
        if (count > 0) {
            out.add(block(code, from, at, count));
        }
        return out;
    }

    private static Piece block(String code, int from, int to, int count) {
        String source = code.substring(from, to);
        if (count == 1 && !Statements.isCall(source)) {
            return new Piece(source, from, false, true, false);
        }
        // The line's end closes a comment that the last statement may have after it.
        return new Piece("{" + source + "\n}", from - 1, true, true, false);
    }
}
