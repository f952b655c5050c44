# The order between what goes out as messages (values, plots, displays) and what is
# written to the descriptors 1 and 2, which the agent reads beside them: what was written
# before a message is taken before it, and here the kernel waits, before something may be
# written, until the messages were taken. Between stdout and stderr likewise.

# How long it waits at most, and until it looks again, in seconds.
PATIENCE <- 5
PAUSE <- 0.0002
# So many switches between stdout and stderr of a cell keep their order: each costs a
# moment, and a loop may make any number of them.
SWITCHES <- 64L

parting <- new.env(parent = emptyenv())
parting$number <- 0L
parting$untaken <- FALSE # a message was sent since the last time
parting$switches <- 0L # that the running cell has left

setup_order <- function() {
  file <- file.path(directory, "taken")
  parting$file <- if (file.exists(file)) file
}

# part returns once all that was sent and written so far was taken.
part <- function() {
  if (forked() || is.null(parting$file)) {
    return(invisible())
  }
  parting$untaken <- FALSE
  number <- parting$number <- parting$number + 1L
  publish("taken_request", list(number = number))
  end <- seconds() + PATIENCE
  seen <- FALSE
  while (taken() < number && seconds() < end) {
    base_try(Sys.sleep(PAUSE), interrupt = function(e) seen <<- TRUE)
  }
  if (seen) {
    # Sys.sleep takes interrupts that are suspended too (R 4.2). It is the cell's, if
    # that runs.
    tools::pskill(session$pid, tools::SIGINT)
  }
  invisible()
}

# seconds is a clock.
seconds <- function() .subset2(proc.time(), 3L)

# taken is the number that was answered last. A cell may have removed the file.
taken <- function() {
  number <- tryCatch(read_file(parting$file, "integer", 1L, 4L, endian = "little"), warning = identity, error = identity)
  if (is.integer(number) && length(number) == 1L) number else .Machine$integer.max
}

# read_file is readBin of a file, which asks for a method to close it.
read_file <- function(path, ...) {
  con <- file(path, "rb")
  on.exit(close.connection(con))
  readBin(con, ...)
}

# say writes to stderr, in order with what goes to stdout.
say <- function(...) {
  apart <- sink.number("message") == 2L && parting$switches > 0L
  if (apart) {
    parting$switches <- parting$switches - 1L
    part()
  } else if (parting$untaken) {
    part()
  }
  cat(..., sep = "", file = stderr())
  if (apart) {
    part()
  }
}

# tell_message is what message() does by itself.
tell_message <- function(m) {
  if (!is.null(findRestart("muffleMessage"))) {
    say(conditionMessage(m))
    invokeRestart("muffleMessage")
  }
}
