package cellard.kernel;

import java.io.ByteArrayOutputStream;
import java.util.Base64;

/** Pictures as PNG. What is of java.desktop is named only inside, where one came. */
final class Images {
    private Images() {}

    static boolean is(Object value) {
        for (Class<?> c = value == null ? null : value.getClass(); c != null; c = c.getSuperclass()) {
            if (c.getName().equals("java.awt.image.BufferedImage")) {
                return true;
            }
        }
        return false;
    }

    static String png(Object image) {
        return Writer.png(image);
    }

    private static final class Writer {
        static String png(Object image) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try {
                javax.imageio.ImageIO.setUseCache(false); // no files
                if (!javax.imageio.ImageIO.write((java.awt.image.BufferedImage) image, "png", bytes)) {
                    throw new IllegalArgumentException("this image can't be written as PNG: convert it to TYPE_INT_ARGB");
                }
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
            return Base64.getEncoder().encodeToString(bytes.toByteArray());
        }
    }
}
