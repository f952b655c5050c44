# What asks for input: readline(), and whatever reads from R's standard input. A cell
# that was given no answers gets an error, and none of them waits for ever.

input <- new.env(parent = emptyenv())

setup_input <- function() {
  input$readLines <- base::readLines
  input$scan <- base::scan
  override("base", "readline", function(prompt = "") ask(prompt))
  override("base", "readLines", function(con = stdin(), n = -1L, ok = TRUE, warn = TRUE, encoding = "unknown", skipNul = FALSE) {
    if (is_stdin(con)) ask_lines(n) else input$readLines(con, n, ok, warn, encoding, skipNul)
  })
  # scan takes its arguments by many names: only those that name the input are looked at.
  override("base", "scan", function(file = "", ..., text) {
    if (!missing(text)) {
      return(input$scan(..., text = text))
    }
    if (!identical(file, "") && !is_stdin(file)) {
      return(input$scan(file, ...))
    }
    given <- list(...)
    count <- c(given$nlines, given$n, given$nmax)
    input$scan(..., text = ask_lines(if (length(count) > 0L && count[[1L]] > 0) count[[1L]] else -1L, blank = TRUE))
  })
  # Its own reads what is not there, where R is not interactive.
  override("base", "file.choose", function(new = FALSE) ask("Enter file name: "))
  override("utils", "read.table", with_answers(utils::read.table)) # read.csv and others call it
  setHook(packageEvent("getPass", "onLoad"), function(...) {
    override("getPass", "getPass", function(msg = "PASSWORD: ", ...) ask(msg, password = TRUE))
  })
}

# with_answers makes read.table read the answers where it was to read R's input.
with_answers <- function(read) {
  first <- bquote(if (!missing(file) && .(is_stdin)(file)) {
    text <- .(ask_lines)(-1L)
    file <- textConnection(text, encoding = "UTF-8")
    encoding <- "UTF-8"
    on.exit(close(file))
  })
  body(read) <- as.call(append(as.list(body(read)), first, 1L))
  read
}

# is_stdin tells R's standard input, and the process's.
is_stdin <- function(con) {
  inherits(con, "connection") && (as.integer(con) == 0L || identical(summary(con)$description, "stdin")) ||
    identical(con, "stdin")
}

# ask asks the agent for a line.
ask <- function(prompt = "", password = FALSE) {
  request <- session$request
  if (forked() || !isTRUE(request$content$allow_stdin)) {
    refuse("the cell asked for input, and was given no answers: send them with the cell", "StdinNotImplementedError")
  }
  while (length(poll("stdin", 0L)) > 0L) {
    receive("stdin") # an answer that came too late for its question
  }
  flush(stdout())
  send("stdin", "input_request", list(prompt = paste(prompt, collapse = ""), password = password), request)
  repeat {
    # In short waits: interrupts are seen in between.
    if (length(poll("stdin", 50L)) > 0L) {
      reply <- receive("stdin")
      if (!is.null(reply)) break
    }
    Sys.sleep(0)
  }
  value <- paste(as.character(reply$content$value), collapse = "")
  if (identical(value, "\004")) {
    refuse("the input has ended", "EOFError")
  }
  value
}

# ask_lines asks for so many lines; a negative number, or, with blank, an empty line,
# stands for all until the end.
ask_lines <- function(n, blank = FALSE) {
  lines <- character()
  while (n < 0 || length(lines) < n) {
    line <- tryCatch(ask(), EOFError = function(e) NULL)
    if (is.null(line) || blank && !nzchar(line)) {
      break
    }
    lines <- c(lines, line)
  }
  lines
}

# override puts a function of ours in a package's place of its own.
override <- function(package, name, fn) {
  place <- paste0("package:", package)
  environments <- list(asNamespace(package), if (place %in% search()) as.environment(place))
  for (environment in environments) {
    if (!is.null(environment)) {
      unlockBinding(name, environment)
      assign(name, fn, envir = environment)
      lockBinding(name, environment)
    }
  }
}
