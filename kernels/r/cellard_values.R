# What a value is shown as: always text, and what of HTML, images and tables its class
# has. Markdown and LaTeX, which IRkernel adds to each value, nobody reads here.

# The longest vector, in elements, and the longest data frame or matrix, in rows, that
# is printed whole when it is a value. print() itself is R's own.
ELEMENTS <- 10000L
ROWS_PRINTED <- 60L

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

publish_bundle <- function(data, type = "display_data", display_id = NULL) {
  if (forked()) {
    # A child has no way but its descriptors.
    text <- data[["text/plain"]]
    if (!is.null(text)) cat(text, "\n", sep = "")
    return(invisible())
  }
  transient <- if (is.null(display_id)) json("{}") else to_json(list(display_id = as.character(display_id)[[1L]]))
  values <- vapply(names(data), function(type) as.character(mime_json(type, data[[type]])), "")
  publish(type, json(paste0(
    '{"data":', json_object(names(data), values), ',"metadata":{},"transient":', transient,
    if (type == "execute_result") paste0(',"execution_count":', session$count - 1L), "}"
  )))
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
  lines <- utils::capture.output(print_value(value))
  paste(lines, collapse = "\n")
}

print_value <- function(value) {
  session$depth <- sys.nframe() - 3L # the calls that come now are of the value's class
  if (isS4(value)) {
    methods::show(value)
  } else if (is_plain_frame(value) || is.matrix(value) && is.atomic(value) && !is.object(value)) {
    print(value, max = max(ROWS_PRINTED * ncol(value), 1L))
  } else {
    print(value)
  }
}

# A data frame without a print method of another class before its own.
is_plain_frame <- function(value) identical(class(value), "data.frame")
