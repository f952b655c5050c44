# The cells of a column as texts of JSON.

# column_json is the first elements of a column as texts of JSON, and their type.
column_json <- function(column, shown, state) {
  failed <- function(e) {
    state$cut <- TRUE
    list(type = "any", cells = rep("null", shown))
  }
  tryCatch(column_parts(column, shown, state), error = failed)
}

column_parts <- function(column, shown, state) {
  first <- seq_len(shown)
  made <- function(type, cells, missing) {
    cells[missing] <- "null"
    list(type = type, cells = cells)
  }
  if (is.factor(column)) {
    # By its parts: the levels are text, whatever methods its class has.
    text <- attr(column, "levels")[unclass(column)[first]]
    return(made("string", json_text(shorten(text, state)), is.na(text)))
  }
  if (inherits(column, "POSIXlt")) {
    column <- as.POSIXct(column)
  }
  if (inherits(column, c("Date", "POSIXct", "difftime", "integer64"))) {
    part <- structure(unclass(column)[first], class = class(column), tzone = attr(column, "tzone"), units = attr(column, "units"))
    return(time_column(part, made))
  }
  if (is.data.frame(column) || is.matrix(column)) {
    return(wide_column(column, shown, state))
  }
  if (is.object(column) && !is.list(column)) {
    column <- as.character(column[first]) # a class of somebody's: as it writes itself
  }
  part <- column[first]
  switch(typeof(part),
    logical = made("boolean", ifelse(part, "true", "false"), is.na(part)),
    integer = made("integer", as.character(part), is.na(part)),
    double = made("number", json_numbers(part), !is.finite(part)),
    character = made("string", json_text(shorten(part, state)), is.na(part)),
    complex = made("string", json_text(as.character(part)), is.na(part)),
    raw = made("string", json_text(as.character(part)), FALSE),
    list = list(type = "any", cells = vapply(part, item_json, "", depth = 1L, state = state)),
    list(type = "any", cells = rep("null", shown))
  )
}

# time_column is a column of dates, times, durations or integers of 64 bits.
time_column <- function(part, made) {
  missing <- is.na(part) | (!inherits(part, "integer64") & !is.finite(unclass(part)))
  if (inherits(part, "Date")) {
    return(made("datetime", json_text(format.Date(part, "%Y-%m-%d")), missing))
  }
  if (inherits(part, "POSIXct")) {
    return(made("datetime", json_text(iso_time(part)), missing))
  }
  if (inherits(part, "difftime")) {
    seconds <- as.double(unclass(part)) * switch(attr(part, "units"), secs = 1, mins = 60, hours = 3600, days = 86400, weeks = 604800, 1)
    return(made("duration", json_text(iso_duration(seconds)), missing))
  }
  text <- as.character(part) # bit64's method
  exact <- nchar(text) < 16L | abs(suppressWarnings(as.double(text))) < EXACT
  exact[is.na(exact)] <- FALSE
  made("integer", ifelse(exact, text, json_text(text)), is.na(text))
}

iso_time <- function(time) {
  seconds <- as.double(unclass(time))
  fraction <- any(seconds %% 1 != 0 & is.finite(seconds))
  text <- format.POSIXct(time, if (fraction) "%Y-%m-%dT%H:%M:%OS6%z" else "%Y-%m-%dT%H:%M:%S%z", usetz = FALSE)
  sub("([+-][0-9]{2})([0-9]{2})$", "\\1:\\2", text)
}

# iso_duration writes seconds as ISO 8601, with a sign before what is negative:
# P1DT2H3M4.5S.
iso_duration <- function(seconds) {
  total <- abs(seconds)
  days <- total %/% 86400
  hours <- total %/% 3600 %% 24
  minutes <- total %/% 60 %% 60
  rest <- round(total %% 60, 6)
  part <- function(number, letter) ifelse(number > 0, paste0(format(number, trim = TRUE, scientific = FALSE), letter), "")
  clock <- paste0(part(hours, "H"), part(minutes, "M"))
  bare <- !nzchar(clock) & days == 0
  clock <- paste0(clock, ifelse(rest > 0 | bare, paste0(sub("[.]?0+$", "", sprintf("%.6f", rest)), "S"), ""))
  clock <- sub("^S$", "0S", clock)
  paste0(ifelse(seconds < 0, "-", ""), "P", part(days, "D"), ifelse(nzchar(clock), paste0("T", clock), ""))
}

# wide_column is a column that is itself a matrix or a frame: each cell is a list.
wide_column <- function(column, shown, state) {
  parts <- if (is.data.frame(column)) unclass(column) else lapply(seq_len(ncol(column)), function(i) column[seq_len(shown), i])
  attributes(parts) <- NULL
  cells <- lapply(utils::head(parts, ITEMS), function(part) column_json(part, shown, state)$cells)
  list(type = "any", cells = paste0("[", if (length(cells) > 0L) do.call(paste, c(cells, sep = ",")) else rep("", shown), "]"))
}

# item_json is an element of a list column.
item_json <- function(item, depth, state) {
  if (proc.time()[[1L]] > state$deadline) {
    state$cut <- TRUE
    return("null")
  }
  if (is.null(item)) {
    return("null")
  }
  if (!is.atomic(item) && !is.list(item) || is.object(item) && is.list(item)) {
    return(json_text(paste0("<", class(item)[[1L]], ">")))
  }
  if (depth > DEPTH) {
    return('"…"')
  }
  count <- length(unclass(item))
  if (count > ITEMS) {
    state$cut <- TRUE
  }
  shown <- min(count, ITEMS)
  cells <- if (is.list(item)) {
    vapply(item[seq_len(shown)], item_json, "", depth = depth + 1L, state = state)
  } else {
    names <- names(item)
    column_json(if (is.object(item)) item else unname(c(item)), shown, state)$cells
  }
  if (count == 1L && is.atomic(item)) {
    return(cells)
  }
  names <- names(item)
  if (is.null(names)) {
    return(paste0("[", paste(cells, collapse = ","), "]"))
  }
  as.character(json_object(make.unique(as.character(names[seq_len(shown)])), cells))
}

shorten <- function(text, state) {
  text <- as.character(text)
  long <- !is.na(text) & nchar(text, "bytes") > TEXT
  if (any(long)) {
    state$cut <- TRUE
    text[long] <- paste0(substr(valid(text[long]), 1L, TEXT - 1L), "…")
  }
  text
}
