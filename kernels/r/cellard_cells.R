# Running a cell's code, as R's own prompt runs it: one expression after another, the
# value of each shown when it is visible, warnings told after the expression that they
# came from.
#
# What code prints is not captured: R writes it to file descriptors 1 and 2, as its
# children do, and the agent reads these. So it comes at once and in order, nothing is
# held in memory, and no interrupt loses it.

# How many calls of a traceback are shown at each end, how long the text of one may
# be, and an error's message, in characters.
CALLS <- 20L
CALL_WIDTH <- 200L
MESSAGE <- 64L * 1024L

# run_cell runs the code and returns what the reply says of its failure, or NULL.
run_cell <- function(code, number, silent) {
  name <- sprintf("<cell %d>", number)
  # A name that only a cell's source references have; see format_call.
  lines <- strsplit(gsub("\r\n?", "\n", code), "\n", fixed = TRUE)[[1L]]
  source <- srcfilecopy(name, lines)
  expressions <- tryCatch(
    parse(text = lines, keep.source = TRUE, srcfile = source, encoding = "UTF-8"),
    error = identity
  )
  if (inherits(expressions, "error")) {
    # R has a class of its own for it from 4.3 on.
    text <- message_of(expressions)
    return(list(ename = "parseError", evalue = text, traceback = list(paste0("Error: ", text))))
  }
  for (i in seq_along(expressions)) {
    failure <- run_expression(expressions[[i]], silent, i == length(expressions))
    if (!is.null(failure)) {
      return(if (identical(failure, "left")) NULL else failure)
    }
  }
  NULL
}

# run_expression runs one expression and shows its value. It returns a failure, "left"
# for a cell that has ended itself well, or NULL.
run_expression <- function(expression, silent, last) {
  warned <- new.env(parent = emptyenv())
  calls <- NULL
  outcome <- withRestarts(
    tryCatch(
      base_calling(
        {
          value <- let_in(run_code(expression))
          # Showing runs code of the value's class, which may fail like any other.
          keep_last(value$value)
          warned$showing <- TRUE
          if (!silent) {
            let_in(show_value(value$value, value$visible, last))
          }
          NULL
        },
        warning = function(w) {
          if (keep_warning(w, warned)) invokeRestart("muffleWarning")
        },
        message = tell_message,
        error = function(e) calls <<- calls_at(e),
        interrupt = function(e) calls <<- calls_at(e)
      ),
      error = function(e) failure_of(e, trim_calls(calls)),
      interrupt = function(e) interrupted(trim_calls(calls))
    ),
    # quit() in a cell, and interrupts that R has not seen: see cellard_commands.R.
    cellard_leave = function(failure) failure,
    cellard_interrupt = function() interrupted(NULL),
    # R's own way back to its prompt would end the loop of the kernel.
    abort = function() list(ename = "abort", evalue = "the cell was left by the restart \"abort\"", traceback = list("Error: the cell was left by the restart \"abort\""))
  )
  show_warnings(warned)
  outcome
}

# let_in evaluates what is a cell's: interrupts are let in, and R's compiler is on, which calls
# functions that a cell may have replaced.
let_in <- function(code) {
  .Internal(enableJIT(session$jit))
  on.exit(session$jit <- .Internal(enableJIT(0L)))
  allowInterrupts(code)
}

# keep_out evaluates what is the kernel's, in the middle of a cell.
keep_out <- function(code) {
  jit <- .Internal(enableJIT(0L))
  on.exit(.Internal(enableJIT(jit)))
  suspendInterrupts(code)
}

# of_class is what a condition's class tells of it, perhaps by code of a cell's; NULL where
# that fails or does not end.
of_class <- function(code) {
  tryCatch(allowInterrupts(code), error = function(e) NULL, interrupt = function(e) NULL)
}

# run_code runs an expression where trim_calls can tell the cell's own calls.
run_code <- function(expression) {
  session$depth <- sys.nframe()
  withVisible(eval(expression, globalenv()))
}

keep_last <- function(value) {
  base <- baseenv()
  unlockBinding(".Last.value", base)
  assign(".Last.value", value, envir = base)
  lockBinding(".Last.value", base)
}

interrupted <- function(calls) {
  list(ename = "interrupt", evalue = "the cell was interrupted", traceback = traceback_of("Interrupted", calls))
}

# failure_of is what an error is in a message.
failure_of <- function(e, calls) {
  text <- message_of(e)
  call <- attr(calls, "where")
  if (is.null(call)) {
    call <- of_class(conditionCall(e))
  }
  where <- if (is.null(call) || ours(call)) "" else paste0(" in ", call_text(call))
  list(
    ename = valid(class(e)[[1L]]),
    evalue = text,
    traceback = traceback_of(paste0("Error", where, ": ", text), calls)
  )
}

# message_of is a condition's message, which its class may make by code of a cell's.
message_of <- function(e) {
  text <- of_class(paste(conditionMessage(e), collapse = "\n"))
  if (!is.character(text) || length(text) != 1L || is.na(text)) {
    text <- paste0("<", class(e)[[1L]], ">")
  }
  text <- valid(text)
  if (nchar(text) > MESSAGE) paste0(substr(text, 1L, MESSAGE), "…") else text
}

# ours tells the call of eval above, which is what a top-level stop() was called from.
ours <- function(call) {
  identical(call, quote(eval(expression, globalenv()))) || identical(call[[1L]], quote(withVisible))
}

traceback_of <- function(head, calls) {
  if (length(calls) == 0L) {
    return(list(head))
  }
  n <- length(calls)
  shown <- seq_len(n)
  if (n > 2L * CALLS + 1L) {
    shown <- c(seq_len(CALLS), seq.int(n - CALLS + 1L, n))
  }
  lines <- sprintf("%d. %s", shown, vapply(calls[shown], format_call, ""))
  if (length(shown) < n) {
    lines <- append(lines, sprintf("[%d calls in the middle are left out]", n - length(shown)), CALLS)
  }
  lapply(c(head, "Traceback:", lines), identity)
}

format_call <- function(call) {
  reference <- attr(call, "srcref")
  file <- attr(reference, "srcfile")$filename
  place <- if (is.null(file)) "" else sprintf("   # %s, line %d", basename(file), reference[[1L]])
  paste0(call_text(call), place)
}

call_text <- function(call) {
  text <- tryCatch(valid(deparse(call, width.cutoff = 120L, nlines = 1L)[[1L]]), error = function(e) "<call>")
  if (nchar(text) > CALL_WIDTH) paste0(substr(text, 1L, CALL_WIDTH), "…") else text
}

# refuse raises an error of the kernel's own, about what a cell has asked it for.
refuse <- function(text, class = "simpleError") {
  stop(structure(class = c(class, "error", "condition"), list(message = text, call = NULL), cellard = TRUE))
}

# calls_at are the calls that led to a condition, for the handler that calls this. What
# the kernel's own functions have called is left out of those that refuse, and of an
# interrupt's, which may find the kernel anywhere.
calls_at <- function(e) {
  calls <- sys.calls()
  calls <- calls[seq_len(length(calls) - 1L)] # not this one
  if (!isTRUE(attr(e, "cellard")) && !inherits(e, "interrupt")) {
    inner <- inner_calls(calls)
    return(structure(calls, inner = inner, where = outer_call(of_class(conditionCall(e)), calls, inner)))
  }
  first <- session$depth + 4L
  for (i in seq_along(calls)) {
    if (i >= first && of_kernel(environment(sys.function(i)))) {
      # One that is called by itself, not by a name, is inside a function of R's.
      last <- if (is.name(calls[[i]][[1L]])) i else i - 1L
      return(c(calls[seq_len(last)], list(quote(handler()))))
    }
  }
  calls
}

# inner_calls tells which of the calls are no cell's to know of: what functions of
# the kernel's have called. What R's own function calls is told where the kernel's stands
# before one of that name, and what is a cell's own is told wherever it was called from.
inner_calls <- function(calls) {
  first <- session$depth + 4L
  parents <- sys.parents()
  kernel <- inner <- original <- logical(length(calls))
  for (i in seq_along(calls)) {
    parent <- parents[[i]]
    if (i < first) {
      next
    }
    called <- environment(sys.function(i))
    kernel[[i]] <- of_kernel(called)
    if (parent < first) {
      next
    }
    original[[i]] <- kernel[[parent]] && is_original(calls[[i]])
    inner[[i]] <- (kernel[[parent]] || inner[[parent]] && !original[[parent]]) && !identical(topenv(called), globalenv())
  }
  inner
}

# is_original tells how the kernel's functions call R's own of the same name.
is_original <- function(call) {
  head <- call[[1L]]
  identical(head, quote(call)) || is.call(head) && identical(head[[1L]], quote(`$`)) && identical(head[[2L]], quote(input))
}

# outer_call is the call to tell for one of inner's: NULL where it is none of them.
outer_call <- function(call, calls, inner) {
  if (!is.call(call) || !is_original(call)) {
    return(NULL)
  }
  outer <- NULL
  found <- NULL
  for (i in seq_along(calls)) {
    if (!inner[[i]]) {
      outer <- calls[[i]]
    } else if (identical(calls[[i]], call, ignore.srcref = TRUE)) {
      found <- outer
    }
  }
  found
}

# of_kernel tells the environment of a function of the kernel's own.
of_kernel <- function(envir) {
  while (!is.null(envir) && !identical(envir, emptyenv())) {
    if (identical(envir, environment(refuse))) {
      return(TRUE)
    }
    envir <- parent.env(envir)
  }
  FALSE
}

# trim_calls leaves the calls of the cell's own: without those that led to it, and
# without those that the handler of the condition was called by.
trim_calls <- function(calls) {
  # After run_code there is withVisible, and then eval twice: as the function, and as
  # what it evaluates in.
  first <- session$depth + 4L
  last <- length(calls) - 1L # the handler's own
  while (last >= first && handling(calls[[last]])) {
    last <- last - 1L
  }
  if (last >= first) {
    shown <- seq.int(first, last)
    inner <- attr(calls, "inner")[shown] # NULL of those that refuse
    structure(calls[if (is.null(inner)) shown else shown[!inner]], where = attr(calls, "where"))
  }
}

handling <- function(call) {
  is.name(call[[1L]]) &&
    as.character(call[[1L]]) %in% c(".handleSimpleError", ".signalSimpleWarning", "withRestarts", "withOneRestart", "doWithOneRestart")
}

# keep_warning takes note of a warning as the option warn says, and tells whether that
# was all.
keep_warning <- function(w, warned) {
  call <- of_class(conditionCall(w))
  if (is.call(call) && is_original(call)) {
    calls <- sys.calls()
    outer <- outer_call(call, calls, inner_calls(calls))
    if (!is.null(outer)) w$call <- outer
  }
  level <- getOption("warn")
  level <- if (is.numeric(level) && length(level) == 1L && !is.na(level)) level else 0
  if (level >= 2) {
    return(FALSE) # R makes an error of it
  }
  if (level >= 1) {
    say(warning_text(w, "Warning"), "\n")
  } else if (level >= 0) {
    warned$count <- sum(warned$count, 1L)
    if (isTRUE(warned$showing)) {
      w$call <- NULL # of the kernel's own functions, most likely
    }
    if (warned$count <= 50L) {
      warned$list <- c(warned$list, list(w))
    }
  }
  TRUE
}

# last_warnings is warnings(): R's own only knows those that its own prompt has told.
last_warnings <- function(...) {
  if (!is.null(session$warnings)) structure(session$warnings, dots = list(...))
}

# show_warnings tells what was kept, in R's words.
show_warnings <- function(warned) {
  if (is.null(warned$count)) {
    return()
  }
  kept <- warned$list
  calls <- lapply(kept, function(w) {
    call <- of_class(conditionCall(w))
    if (ours(call)) NULL else call
  })
  session$warnings <- structure(calls, names = vapply(kept, message_of, ""), class = "warnings")
  if (warned$count > 50L) {
    text <- "There were 50 or more warnings (use warnings() to see the first 50)"
  } else if (warned$count > 10L) {
    text <- sprintf("There were %d warnings (use warnings() to see them)", warned$count)
  } else if (length(kept) == 1L) {
    text <- warning_text(kept[[1L]], "Warning message")
  } else {
    lines <- vapply(seq_along(kept), function(i) warning_text(kept[[i]], i), "")
    text <- paste(c("Warning messages:", lines), collapse = "\n")
  }
  say(text, "\n")
}

# warning_text is a warning as R tells it: at once ("Warning"), alone ("Warning message"),
# or in a list, by its number there.
warning_text <- function(w, head) {
  call <- of_class(conditionCall(w))
  text <- message_of(w)
  after <- switch(as.character(head), "Warning message" = ":\n", ": ")
  if (is.null(call) || ours(call)) {
    return(paste0(head, after, text))
  }
  paste0(head, if (head == "Warning") " in " else paste0(after, "In "), call_text(call), " : ", text)
}
