# What is asked about code: completions, help, whether it is complete.

# complete and inspect are IRkernel's, which is only loaded for them.
complete <- function(request) {
  content <- request$content
  cursor <- cursor_of(content)
  found <- getFromNamespace("completions", "IRkernel")(content$code, cursor)
  list(
    matches = as.list(as.character(found$comps)), metadata = no_names(),
    cursor_start = found$start, cursor_end = found$end
  )
}

inspect <- function(request) {
  answer <- NULL
  kernel <- list(send_response = function(type, request, channel, content) answer <<- content)
  method <- getFromNamespace("Kernel", "IRkernel")$def@refMethods$inspect
  inspector <- method@.Data
  environment(inspector) <- list2env(kernel, parent = asNamespace("IRkernel"))
  request$content$cursor_pos <- cursor_of(request$content)
  inspector(request)
  if (!isTRUE(answer$found) || isTRUE(startsWith(answer$data[["text/plain"]], "# Help document:\nNo documentation for"))) {
    answer$found <- FALSE
    answer$data <- no_names()
  } else if (is.character(answer$data[["text/plain"]])) {
    answer$data[["text/plain"]] <- gsub(".\b", "", answer$data[["text/plain"]]) # as in the pager
  }
  answer
}

cursor_of <- function(content) {
  cursor <- content$cursor_pos
  length <- nchar(content$code)
  if (is.null(cursor) || cursor > length) length else as.integer(max(cursor, 0L))
}

is_complete <- function(request) {
  problem <- tryCatch(
    {
      parse(text = request$content$code, keep.source = FALSE, encoding = "UTF-8")
      NULL
    },
    error = conditionMessage
  )
  if (is.null(problem)) {
    return(list(status = "complete"))
  }
  ends <- c(gettext("unexpected end of input", domain = "R"), gettextf("unexpected %s", "INCOMPLETE_STRING", domain = "R"))
  if (any(vapply(ends, grepl, NA, x = problem, fixed = TRUE))) list(status = "incomplete", indent = "") else list(status = "invalid")
}

getFromNamespace <- function(...) utils::getFromNamespace(...)
