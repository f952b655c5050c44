# display(), and files that a cell shows.

FILE_BYTES <- suppressWarnings(as.numeric(Sys.getenv("CELLARD_FILE_BYTES")))
if (is.na(FILE_BYTES) || FILE_BYTES <= 0) FILE_BYTES <- 64 * 2^20
OCTETS <- "application/octet-stream"

# display shows a value beside the cell's result: a bundle (a list whose names are MIME
# types), a file (a path of one that is there), or anything else as it is shown when
# it is a value. What has a display_id can be changed later by the same id with
# update = TRUE; metadata says something of its values, by MIME type.
display <- function(x, ..., display_id = NULL, update = FALSE, metadata = NULL) {
  type <- if (isTRUE(update)) "update_display_data" else "display_data"
  if (is_bundle(x)) {
    data <- x
  } else if (is_path(x)) {
    data <- file_bundle(x)
  } else {
    pages <- plot_count()
    text <- print_text(x)
    if (!nzchar(text) && plot_count() > pages) {
      return(invisible()) # it was drawn, and will be shown
    }
    data <- bundle_of(x, text)
  }
  publish_bundle(data, type, display_id, metadata)
  invisible()
}

# display_file shows a file by its type.
display_file <- function(path) {
  publish_bundle(file_bundle(path))
  invisible()
}

is_bundle <- function(x) {
  is.list(x) && !is.object(x) && length(x) > 0L && !is.null(names(x)) &&
    all(grepl("^[a-z]+/[A-Za-z0-9.+_-]+$", names(x)))
}

is_path <- function(x) {
  is.character(x) && length(x) == 1L && !is.object(x) && !is.na(x) && nchar(x, "bytes") < 4096L &&
    nzchar(x) && file.exists(x) && is_regular(x)
}

# file_bundle is a file's content by the type that its name tells, and its path as text.
file_bundle <- function(path) {
  path <- path.expand(as.character(path)[[1L]])
  quoted <- encodeString(path, quote = '"')
  size <- file.size(path)
  if (is.na(size)) {
    refuse(paste0("there is no file ", quoted))
  }
  if (size > FILE_BYTES) {
    refuse(sprintf("%s is larger than %.0f bytes, which is the limit for showing a file", quoted, FILE_BYTES))
  }
  if (!is_regular(path)) {
    refuse(paste0("not a regular file: ", quoted))
  }
  bytes <- if (size > 0) readBin(path, "raw", size) else read_unsized(path)
  ending <- tolower(sub("^.*[.]", "", basename(path)))
  type <- if (grepl(".", basename(path), fixed = TRUE)) TYPES[ending] else NA
  if (is.na(type)) {
    type <- OCTETS
  }
  value <- file_value(type, bytes)
  if (is.null(value)) { # not what its name says
    if (type %in% BINARY) {
      type <- OCTETS
    } else {
      type <- "text/plain"
    }
    value <- file_value(type, bytes)
  }
  if (type == "text/plain") {
    return(list("text/plain" = value))
  }
  structure(list(path, value), names = c("text/plain", type))
}

file_value <- function(type, bytes) {
  if (type %in% BINARY) {
    return(json(paste0('"', base64(bytes), '"')))
  }
  text <- valid(bytes_text(bytes))
  if (type == "application/json" || grepl("[+]json$", type)) {
    text <- sub("^\ufeff", "", text)
    return(if (isTRUE(jsonlite::validate(text))) json(text))
  }
  to_json(text)
}

# is_regular tells a file whose reading ends. R itself doesn't tell a FIFO or a device
# from a file; but these have no size, and of what has none the command test knows.
is_regular <- function(path) {
  if (dir.exists(path)) {
    return(FALSE)
  }
  isTRUE(file.size(path) > 0) || base_system2("test", c("-f", shQuote(path))) == 0L
}

# read_unsized reads a file that says it is empty, as those of /proc do.
read_unsized <- function(path) {
  con <- file(path, "rb")
  on.exit(close(con))
  bytes <- raw()
  while (length(part <- readBin(con, "raw", 65536L)) > 0L) {
    bytes <- c(bytes, part)
    if (length(bytes) > FILE_BYTES) {
      refuse(sprintf("%s is larger than %.0f bytes, which is the limit for showing a file", encodeString(path, quote = '"'), FILE_BYTES))
    }
  }
  bytes
}
