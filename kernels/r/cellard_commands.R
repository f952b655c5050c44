# quit() in a cell, and what would keep an interrupt from it: children, and handlers of
# its own.

base_quit <- base::quit
base_system <- base::system
base_system2 <- base::system2
base_calling <- base::withCallingHandlers
base_try <- base::tryCatch

setup_commands <- function() {
  quit <- function(save = "default", status = 0, runLast = TRUE) leave(save, status, runLast, sys.call())
  override("base", "quit", quit)
  override("base", "q", quit)
  override("base", "system", through(base_system))
  override("base", "system2", through(base_system2))
  override("base", "tryCatch", with_end(base::tryCatch))
  override("base", "withCallingHandlers", with_end(base::withCallingHandlers))
}

# leave ends the cell as it would end a script: well with status 0, else as an error.
# The session goes on. What R refuses or warns of is so here, in its words.
leave <- function(save, status, runLast, call) {
  if (!is.character(save)) {
    stop(simpleError(gettext('one of "yes", "no", "ask" or "default" expected.', domain = "R"), call))
  }
  if (!save[1L] %in% c("yes", "no", "ask", "default")) {
    stop(simpleError(gettext("unrecognized value of 'save'", domain = "R"), call))
  }
  doubt <- function(text) warning(simpleWarning(gettext(text, domain = "R"), call))
  if (save[[1L]] == "ask") {
    doubt('save="ask" in non-interactive use: command-line default will be used')
  }
  status <- suppressWarnings(as.integer(status))[1L]
  if (is.na(status)) {
    doubt("invalid 'status', 0 assumed")
    status <- 0L
  }
  if (is.na(as.logical(runLast)[1L])) {
    doubt("invalid 'runLast', FALSE assumed")
  }
  if (forked()) {
    base_quit("no", status, FALSE)
  }
  if (status == 0L) {
    return(invokeRestart("cellard_leave", "left"))
  }
  text <- sprintf("quit() ended the cell with status %d; the session and its variables are kept", status)
  invokeRestart("cellard_leave", list(ename = "quit", evalue = text, traceback = list(paste("Error:", text))))
}

# through makes system or system2 end the cell when it is being interrupted. R ignores
# the signal as long as it waits for a child, and the signal ends the child: the cell
# would go on with what comes after it, and a loop over sleeping children never end.
through <- function(call) {
  call <- trapped(call)
  function(...) {
    result <- withVisible(call(...))
    status <- if (is.numeric(result$value)) result$value else attr(result$value, "status")
    # 130 is a shell's, whose command was interrupted. The agent sends a request for the
    # kernel's info after an interrupt, and at no other time while a cell runs.
    if (!forked() && (identical(as.integer(status), 130L) || nudged())) {
      end_interrupted()
    }
    if (result$visible) result$value else invisible(result$value)
  }
}

# end_interrupted ends the cell as interrupted. Between cells, where the kernel's own code
# catches an interrupt that came late, there is none to end.
end_interrupted <- function() {
  if (!is.null(findRestart("cellard_interrupt"))) {
    invokeRestart("cellard_interrupt")
  }
}

# trapped makes the shell tell that it was interrupted. By itself it becomes the command,
# where that is one, and what R returns when SIGINT has ended that is 2, as of a command
# that has failed.
trapped <- function(call) {
  steps <- as.list(body(call))
  last <- steps[[length(steps)]]
  if (!identical(last[[1L]], quote(.Internal)) || !identical(last[[2L]][[1L]], quote(system))) {
    return(call) # another R's, made in another way
  }
  trap <- quote(if (is.character(command) && length(command) == 1L && nzchar(command)) {
    command <- paste0("trap 'exit 130' INT; ", command)
  })
  body(call) <- as.call(append(steps, trap, length(steps) - 1L))
  call
}

# nudged tells whether a request for the kernel's info is waiting. What it takes from
# the socket for that is answered after the cell.
nudged <- function() {
  keep_out({
    while (length(poll("shell", 0L)) > 0L) {
      session$waiting <- c(session$waiting, list(receive("shell")))
    }
  })
  any(vapply(session$waiting, function(request) identical(request$header$msg_type, "kernel_info_request"), NA))
}

# with_end makes tryCatch or withCallingHandlers hand a cell no more than its first interrupt: a loop that
# catches them all could not be stopped otherwise.
with_end <- function(try) {
  steps <- as.list(body(try))
  at <- which(vapply(steps, identical, NA, quote(handlers <- list(...))))
  if (length(at) != 1L) {
    return(try) # another R's, made in another way
  }
  guard <- bquote(if (!is.null(names(handlers)) && any(names(handlers) %in% c("interrupt", "condition"))) {
    handlers <- .(guarded)(handlers)
  })
  body(try) <- as.call(append(steps, guard, at))
  try
}

guarded <- function(handlers) {
  force(handlers)
  for (i in which(names(handlers) %in% c("interrupt", "condition"))) {
    handlers[[i]] <- guarded_handler(handlers[[i]])
  }
  handlers
}

guarded_handler <- function(handler) {
  force(handler)
  function(condition) {
    if (inherits(condition, "interrupt")) {
      session$interrupts <- session$interrupts + 1L
      if (session$interrupts > 1L && !forked()) {
        end_interrupted()
      }
    }
    handler(condition)
  }
}
