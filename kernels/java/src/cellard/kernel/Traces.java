package cellard.kernel;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Makes of the stack traces that cells print (printStackTrace, a logger) what they are in
 * an error: classes by the names that they have in cells, and no frames of the kernel's.
 */
final class Traces {
    private static final byte[] SIGN = "REPL.$JShell$".getBytes(StandardCharsets.US_ASCII);
    private static final Pattern PLACE = Pattern.compile("\\(\\$JShell\\$(\\w+)\\.java:\\d+\\)");
    private static final Pattern CELL = Pattern.compile("\\bdo_it\\$\\(|\\blambda\\$do_it\\$\\$\\d+\\(");

    /** The thread whose trace has come to what called its cell; the rest of it is the kernel's. */
    private Thread below;
    private boolean dropped; // a line, whose end is to be dropped too

    /** What is to be printed in place of some bytes; null for those themselves. */
    synchronized byte[] plain(byte[] bytes, int offset, int length) {
        if (below != Thread.currentThread() && !signed(bytes, offset, length)) {
            return null;
        }
        // Byte for byte: these may begin or end within a character.
        String text = new String(bytes, offset, length, StandardCharsets.ISO_8859_1);
        StringBuilder out = new StringBuilder();
        for (int from = 0; from < length; ) {
            int end = text.indexOf('\n', from) + 1;
            String line = text.substring(from, end = end == 0 ? length : end);
            from = end;
            if (below == Thread.currentThread()) {
                if (dropped && line.isBlank()) {
                    dropped = false;
                    continue;
                }
                if (line.startsWith("\tat ")) {
                    dropped = !line.endsWith("\n");
                    continue;
                }
                if (!line.isBlank()) {
                    below = null;
                }
            }
            if (line.startsWith("\tat REPL.") && line.contains(".do_it$(")) {
                below = Thread.currentThread();
                dropped = false;
            }
            out.append(line(line));
        }
        return out.toString().getBytes(StandardCharsets.ISO_8859_1);
    }

    private static String line(String line) {
        Matcher m = PLACE.matcher(line);
        if (m.find()) {
            line = m.replaceFirst(Matcher.quoteReplacement("(" + Threads.place("REPL.$JShell$" + m.group(1)) + ")"));
            line = CELL.matcher(Errors.plain(line)).replaceFirst("(");
            return line;
        }
        return Errors.plain(line);
    }

    private static boolean signed(byte[] bytes, int offset, int length) {
        int last = offset + length - SIGN.length;
        for (int i = offset; i <= last; i++) {
            int n = 0;
            while (n < SIGN.length && bytes[i + n] == SIGN[n]) {
                n++;
            }
            if (n == SIGN.length) {
                return true;
            }
        }
        return false;
    }
}
