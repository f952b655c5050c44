# Data frames and matrices as tables: application/vnd.runtime.table+json, beside what R
# prints of them. Making one never fails a cell, never changes the data, and looks at no
# more of it than it shows.

TABLE <- "application/vnd.runtime.table+json"

setting <- function(name, default) {
  value <- suppressWarnings(as.numeric(Sys.getenv(name)))
  if (is.na(value) || value <= 0) default else min(value, 1e6)
}
ROWS <- setting("CELLARD_TABLE_ROWS", 1000)
COLUMNS <- setting("CELLARD_TABLE_COLUMNS", 100)

# What one text, and all of a table, may hold in characters; how many elements of a
# list, and how deep; how long making it may take, in seconds of work.
TEXT <- 32L * 1024L
TOTAL <- 8 * 1024 * 1024
ITEMS <- 100L
DEPTH <- 4L
WORK <- 1
# Past it a double doesn't hold every integer, and many readers of JSON read doubles.
EXACT <- 2^53

# table_of is a value's table as JSON, or NULL.
table_of <- function(value) {
  if (!is.data.frame(value) && !(is.matrix(value) && is.atomic(value))) {
    return(NULL)
  }
  tryCatch(if (is.data.frame(value)) frame_table(value) else matrix_table(value), error = function(e) NULL)
}

# A frame is taken apart without the methods of its class: they may be slow, or a
# cell's own.
frame_table <- function(frame) {
  rows <- .row_names_info(frame, 2L)
  index <- if (.row_names_info(frame, 1L) > 0L) attr(frame, "row.names")
  columns <- unclass(frame)
  attributes(columns) <- NULL
  make_table(column_names(attr(frame, "names"), length(columns)), columns, index, rows)
}

matrix_table <- function(matrix) {
  rows <- dim(matrix)[[1L]]
  width <- dim(matrix)[[2L]]
  names <- dimnames(matrix)
  cells <- matrix
  attributes(cells) <- NULL
  shown <- min(rows, ROWS)
  columns <- lapply(seq_len(min(width, COLUMNS)), function(i) cells[(i - 1) * rows + seq_len(shown)])
  labels <- column_names(names[[2L]], width)
  make_table(labels, columns, names[[1L]], rows)
}

column_names <- function(names, width) {
  if (is.null(names)) paste0("V", seq_len(width), recycle0 = TRUE) else as.character(names)
}

make_table <- function(names, columns, index, rows) {
  state <- new.env(parent = emptyenv())
  state$cut <- FALSE
  state$deadline <- proc.time()[[1L]] + WORK
  width <- length(names)
  names <- names[seq_len(min(width, COLUMNS))]
  shown <- min(rows, ROWS)
  made <- lapply(columns[seq_along(names)], column_json, shown = shown, state = state)
  cells <- lapply(made, `[[`, "cells")
  lines <- if (length(cells) > 0L) do.call(paste, c(cells, sep = ",")) else rep("", shown)
  total <- cumsum(as.double(nchar(lines)))
  keep <- sum(total <= TOTAL)
  labels <- "null"
  if (!is.null(index)) {
    labels <- column_json(index, keep, state)$cells
    labels <- paste0("[", paste(labels, collapse = ","), "]")
  }
  body <- paste0("[", lines[seq_len(keep)], "]", recycle0 = TRUE, collapse = ",")
  truncated <- keep < rows || length(names) < width || state$cut
  json(paste0(
    '{"columns":[', paste(json_text(shorten(names, state)), collapse = ","), '],"types":[',
    paste(json_text(vapply(made, `[[`, "", "type")), collapse = ","), '],"rows":[', body,
    '],"index":', labels, ',"rowCount":', format(rows, scientific = FALSE),
    ',"truncated":', if (truncated) "true" else "false", "}"
  ))
}

# What an HTML table shows at most.
HTML_ROWS <- 60L
HTML_COLUMNS <- 20L

# html_table is the beginning of a frame or matrix as HTML, with what R's format makes
# of its cells.
html_table <- function(value) {
  if (is.matrix(value)) {
    rows <- dim(value)[[1L]]
    width <- dim(value)[[2L]]
    part <- as.data.frame(value[seq_len(min(rows, HTML_ROWS)), seq_len(min(width, HTML_COLUMNS)), drop = FALSE])
  } else {
    # As above: without the methods of the frame's own class.
    rows <- .row_names_info(value, 2L)
    names <- attr(value, "names")
    width <- length(names)
    shown <- seq_len(min(rows, HTML_ROWS))
    columns <- lapply(unclass(value)[seq_len(min(width, HTML_COLUMNS))], function(column) {
      if (is.null(dim(column))) column[shown] else column[shown, , drop = FALSE]
    })
    part <- structure(columns, names = names[seq_along(columns)], row.names = attr(value, "row.names")[shown], class = "data.frame")
  }
  cells <- as.matrix(format.data.frame(part, trim = TRUE))
  labels <- if (is.matrix(value)) rownames(value) else if (.row_names_info(value, 1L) > 0L) rownames(part)
  more <- c(if (nrow(part) < rows) sprintf("%s rows", format(rows, big.mark = ",")), if (ncol(part) < width) sprintf("%d columns", width))
  cell <- function(tag, texts) paste0("<", tag, ">", html_text(texts), "</", tag, ">", recycle0 = TRUE)
  head <- paste(cell("th", c(if (!is.null(labels)) "", colnames(cells))), collapse = "")
  columns <- lapply(seq_len(ncol(cells)), function(i) cell("td", cells[, i]))
  if (!is.null(labels)) {
    columns <- c(list(cell("th", labels)), columns)
  }
  body <- paste0("<tr>", do.call(paste0, columns), "</tr>\n", recycle0 = TRUE)
  paste0(
    "<table class=\"dataframe\">\n<thead><tr>", head, "</tr></thead>\n<tbody>\n", paste(body, collapse = ""), "</tbody>\n</table>",
    if (length(more) > 0L) paste0("\n<p>of ", paste(more, collapse = " and "), "</p>")
  )
}

html_text <- function(text) {
  text <- gsub("&", "&amp;", valid(substr(text, 1L, 1000L)), fixed = TRUE)
  gsub(">", "&gt;", gsub("<", "&lt;", text, fixed = TRUE), fixed = TRUE)
}
