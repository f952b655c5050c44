# The session's variables: what there is, told without running any code of the cells'.
#
# A class's methods for length, dim, names, format or show may be a cell's own, and may
# loop or fail; so may an active binding, and a promise that nothing has asked for yet.
# So values are taken apart by what asks no method (attr, unclass, .subset), and generic
# functions only see vectors without a class, none of those that look for a method of the
# type's name ("format.numeric") among them.

FEATURE <- "cellard variables"

# What a list holds: variables, characters of a text, elements of a vector or list. How
# long making it may take, in seconds.
VARIABLES <- 1000L
VARIABLE_NAME <- 128L
PREVIEW <- 120L
ELEMENTS_TOLD <- 10L
WAIT <- 1

# What R itself keeps in the global environment.
RS_OWN <- c(".Random.seed", ".requireCachedGenerics", ".cacheOnAssign")

variables <- function(request) {
  names <- ls(globalenv(), all.names = TRUE, sorted = FALSE)
  names <- names[!(names %in% c(RS_OWN, session$own) | startsWith(names, ".__"))]
  total <- length(names)
  names <- names[order(names, method = "radix")][seq_len(min(total, VARIABLES))]
  until <- seconds() + WAIT
  found <- vapply(names, function(name) {
    told <- list(type = "")
    if (seconds() < until) {
      # An interrupt may come; and a warning's handler may be a cell's.
      told <- tryCatch(suppressWarnings(allowInterrupts(tell(name))),
        error = function(e) list(type = "unknown"),
        interrupt = function(e) {
          until <<- 0
          list(type = "unknown")
        }
      )
    }
    variable_json(name, told)
  }, "", USE.NAMES = FALSE)
  list(data = json(paste0("[", paste(found, collapse = ","), "]")), total = total)
}

variable_json <- function(name, told) {
  numbers <- function(n) paste(sprintf("%.0f", as.double(n)), collapse = ",")
  paste0(
    '{"name":', json_text(cut_text(name, VARIABLE_NAME)), ',"type":', json_text(cut_text(told$type, VARIABLE_NAME)),
    ',"size":', if (is.null(told$size)) "null" else numbers(told$size),
    ',"shape":', if (is.null(told$shape)) "null" else paste0("[", numbers(told$shape), "]"),
    ',"preview":', json_text(cut_text(if (is.null(told$preview)) "" else told$preview, PREVIEW)), "}"
  )
}

tell <- function(name) {
  if (bindingIsActive(as.name(name), globalenv())) {
    return(list(type = "active binding"))
  }
  if (kind_bound(name) == "promise" && !come_true(name)) {
    return(list(type = "promise"))
  }
  value <- get0(name, globalenv(), inherits = FALSE) # fails for the missing argument
  shape <- shape_of(value)
  told <- function(made) tryCatch(made, error = function(e) NULL)
  list(
    type = class(value)[[1L]],
    size = if (is.null(shape)) told(size_of(value)),
    shape = shape,
    preview = told(preview_of(value, shape))
  )
}

# kind_bound is the type of what a name is bound to, where a promise is one. No reference
# to it stays: else the cell that changes it next would make a copy.
kind_bound <- function(name) {
  bound <- .Internal(getVarsFromFrame(name, globalenv(), FALSE))
  kind <- .Internal(typeof(bound[[1L]]))
  bound[[1L]] <- NULL
  kind
}

# come_true tells whether a promise has its value already (as that of data() once the set
# is looked at). R's own functions don't say; when it is written down, one that hasn't
# comes with its environment, which is in its first line. No more is written.
come_true <- function(name) {
  head <- NULL
  full <- FALSE
  makeActiveBinding("text", function(value) {
    if (missing(value)) {
      return(character())
    }
    if (length(value) >= 10L && !full) {
      head <<- value
      full <<- TRUE
      stop("enough")
    }
  }, environment())
  con <- textConnection("text", "w", local = TRUE)
  on.exit(close(con))
  tryCatch(serialize(.Internal(getVarsFromFrame(name, globalenv(), FALSE)), con, ascii = TRUE, version = 2L), error = function(e) NULL)
  # The header's lines end with the list's type and length.
  start <- match("531", head)
  identical(head[start + 2L], "5")
}

size_of <- function(value) {
  switch(typeof(value),
    "NULL" = , logical = , integer = , double = , complex = , character = , raw = , list = , expression = , pairlist = {
      if (inherits(value, "POSIXlt")) length(.subset2(value, "sec")) else length(if (is.object(value)) unclass(value) else value)
    },
    environment = if (!is.object(value)) length(value)
  )
}

shape_of <- function(value) {
  if (is_frame(value)) {
    return(c(.row_names_info(value, 2L), length(unclass(value))))
  }
  shape <- attr(value, "dim", exact = TRUE)
  if (is.null(shape) && isS4(value)) {
    shape <- attr(value, "Dim", exact = TRUE) # of package Matrix
  }
  if (is.integer(shape) && !is.object(shape) && length(shape) > 0L && !anyNA(shape)) shape[seq_len(min(length(shape), 64L))]
}

is_frame <- function(value) typeof(value) == "list" && inherits(value, "data.frame")

preview_of <- function(value, shape) {
  if (is_frame(value)) {
    return(paste(first(attr(value, "names", exact = TRUE)), collapse = ", "))
  }
  if (!is.null(shape)) {
    return(if (isS4(value)) "" else typeof(value))
  }
  switch(typeof(value),
    "NULL" = "NULL",
    symbol = as.character(value),
    closure = signature_of(value),
    language = if (is_small(value)) deparse(value, 60L, control = NULL, nlines = 1L)[[1L]],
    logical = , integer = , double = , complex = , character = , raw = if (isS4(value)) "" else vector_text(value),
    list = , expression = if (is.object(value)) "" else list_text(value),
    ""
  )
}

# is_small tells whether a call is one that a person would write on a line: a deeper one
# takes more stack to deparse than there is, which is the end of R.
is_small <- function(value) {
  left <- 100L
  small <- function(node, depth) {
    left <<- left - 1L
    if (is.symbol(node)) {
      return(TRUE)
    }
    if (!is.call(node)) {
      return(is.atomic(node) && is.null(attributes(node)) && length(node) <= 1L)
    }
    if (is.object(node)) {
      node <- unclass(node)
    }
    if (depth > 20L || length(node) > left) {
      return(FALSE)
    }
    for (i in seq_len(length(node))) {
      if (left < 0L || !small(.subset2(node, i), depth + 1L)) {
        return(FALSE)
      }
    }
    TRUE
  }
  small(value, 0L)
}

# first are the first elements of a vector, without its attributes.
first <- function(value) {
  part <- .subset(value, seq_len(min(length(if (is.object(value)) unclass(value) else value), ELEMENTS_TOLD)))
  attributes(part) <- NULL
  part
}

vector_text <- function(value) {
  part <- first(value)
  if (length(part) == 0L) {
    return(paste0(typeof(value), "(0)"))
  }
  text <- class_text(value, part)
  if (is.null(text)) {
    text <- element_text(part)
  }
  labels <- attr(value, "names", exact = TRUE)
  if (is.character(labels)) {
    text <- paste0(cut_text(first(labels), PREVIEW), "=", text)
  }
  left <- length(if (is.object(value)) unclass(value) else value) > length(part)
  paste(c(text, if (left) "\u2026"), collapse = " ")
}

# class_text are elements of one of R's own classes; NULL for those of any other, which are
# told as the vector that they are.
class_text <- function(value, part) {
  if (!is.object(value)) {
    return(NULL)
  }
  if (inherits(value, "factor") && is.integer(part)) {
    levels <- attr(value, "levels", exact = TRUE)
    return(if (is.character(levels)) cut_text(.subset(levels, part), PREVIEW))
  }
  if (inherits(value, "integer64")) {
    return(rep("\u2026", length(part)))
  }
  if (!is.numeric(part)) {
    return(NULL)
  }
  if (inherits(value, "Date")) {
    date_text(part)
  } else if (inherits(value, "POSIXct")) {
    seconds <- part %% 86400
    paste0(date_text(part %/% 86400), sprintf("T%02.0f:%02.0f:%02.0fZ", seconds %/% 3600, seconds %/% 60 %% 60, floor(seconds %% 60)))
  } else if (inherits(value, "difftime")) {
    units <- attr(value, "units", exact = TRUE)
    paste0(element_text(part), if (is.character(units) && length(units) == 1L) paste0(" ", cut_text(units, PREVIEW)))
  }
}

# date_text writes days since 1970 as dates, of the calendar that goes back for ever. (The
# methods of R's that would do it ask others.)
date_text <- function(days) {
  days <- floor(days) + 719468 # since the first of March of the year 0
  era <- days %/% 146097
  day <- days %% 146097
  year <- (day - day %/% 1460 + day %/% 36524 - day %/% 146096) %/% 365
  day <- day - (365 * year + year %/% 4 - year %/% 100)
  month <- (5 * day + 2) %/% 153
  text <- sprintf("%04.0f-%02.0f-%02.0f", year + 400 * era + (month >= 10), month + ifelse(month < 10, 3, -9), day - (153 * month + 2) %/% 5 + 1)
  text[is.na(days) | abs(days) > 1e8] <- "NA"
  text
}

element_text <- function(part) {
  if (!is.character(part)) {
    text <- as.character(part)
    text[is.na(text)] <- "NA"
    return(text)
  }
  missing <- is.na(part)
  text <- encodeString(cut_text(part, PREVIEW), quote = '"')
  text[missing] <- "NA"
  text
}

list_text <- function(value) {
  part <- first(value)
  if (length(part) == 0L) {
    return(paste0(typeof(value), "(0)"))
  }
  text <- vapply(part, item_text, "")
  labels <- attr(value, "names", exact = TRUE)
  if (is.character(labels)) {
    labels <- cut_text(first(labels), PREVIEW)
    text <- paste0(labels, ifelse(nzchar(labels), " = ", ""), text)
  }
  paste(c(text, if (length(value) > length(part)) "\u2026"), collapse = ", ")
}

item_text <- function(item) {
  if (is.atomic(item) && !is.object(item) && length(item) == 1L) {
    return(element_text(first(item)))
  }
  if (is.null(item)) {
    return("NULL")
  }
  size <- if (!is.object(item)) size_of(item)
  paste0(class(item)[[1L]], if (!is.null(size)) sprintf("(%.0f)", as.double(size)))
}

# signature_of names a function's parameters. Their defaults are code.
signature_of <- function(value) {
  parameters <- attr(formals(value), "names", exact = TRUE)
  shown <- parameters[seq_len(min(length(parameters), 4L * ELEMENTS_TOLD))]
  paste0("function(", paste(cut_text(shown, PREVIEW), collapse = ", "), ")")
}

# cut_text makes texts valid, and of at most so many characters.
cut_text <- function(text, most) {
  vapply(text, function(one) {
    if (is.na(one)) {
      return("NA")
    }
    if (nchar(one, "bytes") > 4L * most) {
      one <- tryCatch(substr(one, 1L, most + 1L), error = function(e) bytes_text(charToRaw(one)[seq_len(4L * most)]))
    }
    one <- tryCatch(valid(one), error = function(e) valid(bytes_text(charToRaw(one)))) # of bytes without an encoding
    if (nchar(one) > most) paste0(substr(one, 1L, most - 1L), "\u2026") else one
  }, "", USE.NAMES = FALSE)
}
