# What a value is shown as: always text, and what of HTML, images and tables its class
# has. Markdown and LaTeX, which IRkernel adds to each value, nobody reads here.

# The longest vector, in elements, the largest data frame or matrix, in rows and columns,
# and the longest string, in bytes, that is printed whole when it is a value: no interrupt
# is seen while R formats one. print() itself is R's own.
ELEMENTS <- 10000L
ROWS_PRINTED <- 60L
COLUMNS_PRINTED <- 100L
STRING <- 256L * 1024L

# Rich forms that package repr, or another by a method for repr's generic, can make.
FORMS <- c(
  "text/html" = "repr_html", "image/svg+xml" = "repr_svg", "image/png" = "repr_png",
  "image/jpeg" = "repr_jpg", "application/pdf" = "repr_pdf", "application/json" = "repr_json",
  "application/geo+json" = "repr_geojson", "text/markdown" = "repr_markdown", "text/latex" = "repr_latex"
)
# Of repr's own methods only those for these classes: the others dress up vectors and
# lists.
DRESSED <- c("help_files_with_topic", "packageIQR", "htmlwidget", "shiny.tag", "shiny.tag.list", "htmltools")

# show_value shows the value of an expression of a cell; the last one's is the cell's
# result.
show_value <- function(value, visible, last) {
  if (!visible) {
    return(invisible())
  }
  pages <- plot_count()
  text <- print_text(value)
  if (!nzchar(text)) {
    # A value that is printed by drawing (ggplot2, lattice): its plot is the result.
    if (last && plot_count() > pages) {
      finish_plots(FALSE, main = TRUE)
    }
    return(invisible())
  }
  data <- bundle_of(value, text)
  if (last) {
    finish_plots(FALSE) # what was drawn before it is shown before it
  }
  publish_bundle(data, if (last) "execute_result" else "display_data")
}

publish_bundle <- function(data, type = "display_data", display_id = NULL, metadata = NULL) {
  if (forked()) {
    # A child has no way but its descriptors.
    text <- data[["text/plain"]]
    if (!is.null(text)) cat(text, "\n", sep = "")
    return(invisible())
  }
  transient <- if (is.null(display_id)) json("{}") else to_json(list(display_id = as.character(display_id)[[1L]]))
  values <- vapply(names(data), function(type) unclass(mime_json(type, data[[type]])), "")
  publish(type, json(paste0(
    '{"data":', json_object(names(data), values), ',"metadata":', metadata_json(isolated(data, metadata)), ',"transient":', transient,
    if (type == "execute_result") paste0(',"execution_count":', session$count - 1L), "}"
  )))
  if (type == "execute_result") {
    parting$untaken <- TRUE # it is the last that most cells do
  } else {
    part()
  }
}

# isolated is the metadata, which says of a whole HTML document that it is one, as IRkernel
# does: a page is to show it in a frame of its own.
isolated <- function(data, metadata) {
  html <- data[["text/html"]]
  if (is.character(html) && any(grepl("<html[ >]", html, ignore.case = TRUE, useBytes = TRUE))) {
    metadata <- as.list(metadata)
    metadata[["text/html"]] <- as.list(metadata[["text/html"]])
    metadata[["text/html"]]$isolated <- TRUE
  }
  metadata
}

# metadata_json is what is said of a bundle's values as a JSON object.
metadata_json <- function(metadata) {
  if (is.list(metadata) && length(metadata) > 0L && !is.null(names(metadata))) to_json(metadata) else "{}"
}

# mime_json is a value of a bundle as JSON.
mime_json <- function(type, value) {
  if (inherits(value, "json")) {
    return(value)
  }
  is_json <- type == "application/json" || grepl("[+]json$", type)
  if (is.raw(value)) {
    if (type %in% BINARY || startsWith(type, "image/") && type != "image/svg+xml") {
      return(json(paste0('"', base64(value), '"')))
    }
    value <- valid(bytes_text(value))
  }
  if (is_json) {
    if (is.character(value) && length(value) == 1L && isTRUE(jsonlite::validate(value))) {
      return(json(valid(value)))
    }
    return(to_json(value))
  }
  to_json(valid(paste(as.character(value), collapse = "\n")))
}

base64 <- function(bytes) gsub("[\r\n]", "", jsonlite::base64_enc(bytes))

# bytes_text is a text's bytes as a string, which can't hold a zero.
bytes_text <- function(bytes) {
  bytes[bytes == as.raw(0L)] <- charToRaw("?")
  text <- rawToChar(bytes)
  Encoding(text) <- "UTF-8"
  text
}

# bundle_of is a value by MIME type.
bundle_of <- function(value, text = print_text(value)) {
  data <- list("text/plain" = text)
  table <- table_of(value)
  if (!is.null(table)) {
    data[[TABLE]] <- table
    html <- tryCatch(html_table(value), error = function(e) NULL)
    if (!is.null(html)) {
      data[["text/html"]] <- html
    }
  }
  classes <- if (is.object(value)) class(value) # plain vectors and lists have no forms
  for (type in names(FORMS)) {
    method <- if (is.null(data[[type]])) form(FORMS[[type]], classes)
    if (is.null(method)) {
      next
    }
    made <- tryCatch(method(value), error = function(e) NULL)
    if (length(made) > 0L && (is.raw(made) || is.character(made) || is.list(made))) {
      data[[type]] <- made
    }
  }
  data
}

# form is the method of a class that makes a rich form, or NULL.
form <- function(generic, classes) {
  for (class in classes) {
    dressed <- class %in% DRESSED && generic == "repr_html"
    if (dressed && !requireNamespace("repr", quietly = TRUE)) {
      next
    }
    envir <- if (isNamespaceLoaded("repr")) asNamespace("repr") else globalenv()
    method <- utils::getS3method(generic, class, optional = TRUE, envir = envir)
    if (is.null(method)) {
      method <- get0(paste0(generic, ".", class), envir = globalenv(), mode = "function")
    }
    if (!is.null(method) && (dressed || !from_repr(method))) {
      return(method)
    }
  }
  NULL
}

from_repr <- function(method) {
  isNamespaceLoaded("repr") && identical(environment(method), asNamespace("repr"))
}

# print_text is what R's prompt would print of a value.
print_text <- function(value) {
  limit <- getOption("max.print")
  old <- options(max.print = min(if (is.numeric(limit)) limit else ELEMENTS, ELEMENTS))
  on.exit(options(old))
  sub("\n$", "", printed(print_value(if (utils::object.size(value) > STRING) shorten_strings(value) else value)))
}

# printed is what code prints. (utils::capture.output takes ten times as long.)
printed <- function(code) {
  con <- rawConnection(raw(), "w")
  depth <- sink.number()
  sink(con)
  on.exit({
    while (sink.number() > depth) {
      sink()
    }
    tryCatch(close(con), error = function(e) NULL)
  })
  force(code)
  tryCatch(bytes_text(rawConnectionValue(con)), error = function(e) "") # the code may have closed it
}

# shorten_strings cuts the strings in a value that are too long to print; in a data frame
# they widen each line.
shorten_strings <- function(value, most = STRING, depth = 0L) {
  if (is.character(value) && !is.object(value)) {
    sizes <- nchar(value[seq_len(min(length(value), ELEMENTS))], "bytes")
    long <- which(sizes > most)
    keep <- max(1000L, most %/% max(length(long), 1L))
    for (i in long) {
      head <- iconv(bytes_text(charToRaw(value[[i]])[seq_len(keep)]), "UTF-8", "UTF-8", sub = "")
      value[[i]] <- sprintf("%s… (%d bytes in all)", head, sizes[[i]])
    }
  } else if (is.list(value) && depth < DEPTH && (!is.object(value) || is_plain_frame(value))) {
    for (i in seq_len(min(length(value), ROWS))) {
      item <- .subset2(value, i)
      if ((is.character(item) || is.list(item)) && utils::object.size(item) > STRING) {
        value[[i]] <- shorten_strings(item, if (is.data.frame(value)) most %/% 16L else most, depth + 1L)
      }
    }
  }
  value
}

print_value <- function(value) {
  session$depth <- sys.nframe() - 3L # the calls that come now are of the value's class
  if (isS4(value)) {
    methods::show(value)
  } else if (is_plain_frame(value)) {
    print_part(value, nrow(value), ncol(value))
  } else if (is.matrix(value) && is.atomic(value) && !is.object(value)) {
    print_part(value, min(nrow(value), ROWS_PRINTED), ncol(value))
  } else {
    print(value)
  }
}

# print_part prints the beginning of a data frame or matrix. R cuts a frame's rows by
# itself, but formats all of a matrix.
print_part <- function(value, rows, columns) {
  left <- c(nrow(value) - rows, columns - COLUMNS_PRINTED)
  if (any(left > 0L)) {
    value <- value[seq_len(rows), seq_len(min(columns, COLUMNS_PRINTED)), drop = FALSE]
  }
  print(value, max = max(ROWS_PRINTED * ncol(value), 1L))
  if (left[[1L]] > 0L) {
    cat(sprintf(" [ %d of %d rows are left out ]\n", left[[1L]], left[[1L]] + rows))
  }
  if (left[[2L]] > 0L) {
    cat(sprintf(" [ %d of %d columns are left out ]\n", left[[2L]], columns))
  }
}

# A data frame without a print method of another class before its own.
is_plain_frame <- function(value) identical(class(value), "data.frame")
