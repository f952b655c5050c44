# The kernel: what it answers to each message, and how a cell's life goes.
#
# IRkernel's own loop and executor are not used. They keep what a cell prints until
# its expression is over, lose it when it is interrupted, send no value as the
# result, and take three times as long to start (they load htmltools and pillar).
# What they are made of is (pbdZMQ, jsonlite, digest), and IRkernel answers what
# it is asked less often: completions and help.

session <- new.env(parent = emptyenv())
session$count <- 1L # the number of the next cell
session$request <- NULL # that of the running cell, or of the last one
session$waiting <- NULL # requests that were received while a cell ran
session$depth <- 0L # how deep in calls a cell's own begin
session$interrupts <- 0L # that the running cell has caught itself
session$pid <- Sys.getpid()

# forked tells that this is a child of the kernel (parallel::mclapply, mcparallel):
# the sockets are not its to use.
forked <- function() Sys.getpid() != session$pid

start <- function(connection_file) {
  setup_interrupts()
  setup_temp()
  setup_locale()
  open_sockets(connection_file)
  setup_order()
  setup_options()
  setup_input()
  setup_commands()
  setup_plots()
  setup_tools()
  setup_library()
  session$own <- ls(globalenv(), all.names = TRUE) # packages put theirs there
  read_profile()
  session$irkernel <- as.character(utils::packageVersion("IRkernel"))
  session$version <- paste(R.version$major, R.version$minor, sep = ".")
  session$jit <- .Internal(enableJIT(0L))
  suspendInterrupts(serve())
}

# serve never returns. Interrupts are only let in where a cell's code runs: one that
# comes between two cells is nobody's.
serve <- function() {
  repeat {
    if (length(session$waiting) > 0L) {
      request <- session$waiting[[1L]]
      session$waiting <- session$waiting[-1L]
      attempt(handle("shell", request))
      next
    }
    channels <- poll(c("hb", "shell", "control"))
    forget_interrupts()
    for (channel in channels) {
      attempt(if (channel == "hb") beat() else handle(channel, receive(channel)))
    }
  }
}

# attempt keeps the kernel going whatever is wrong with a message.
attempt <- function(work) {
  tryCatch(work, error = function(e) {
    cat("cellard: a message could not be handled: ", conditionMessage(e), "\n", sep = "", file = stderr())
  })
}

handle <- function(channel, request) {
  if (is.null(request)) {
    return()
  }
  type <- request$header$msg_type
  answer <- switch(type,
    execute_request = execute,
    kernel_info_request = kernel_info,
    complete_request = stoppable(complete),
    inspect_request = stoppable(inspect),
    is_complete_request = is_complete,
    variables_request = variables,
    history_request = function(request) list(history = list()),
    comm_info_request = function(request) list(comms = no_names()),
    interrupt_request = function(request) no_names(), # comes between two cells: see serve
    shutdown_request = function(request) list(restart = isTRUE(request$content$restart)),
    NULL
  )
  send("iopub", "status", BUSY, request)
  if (!is.null(answer)) {
    content <- tryCatch(answer(request), error = function(e) {
      list(status = "error", ename = class(e)[[1L]], evalue = message_of(e), traceback = list())
    })
    if (is.null(content$status)) {
      content <- c(list(status = "ok"), content)
    }
    send(channel, sub("_request$", "_reply", type), content, request)
  }
  send("iopub", "status", IDLE, request)
  if (type == "shutdown_request") {
    close_sockets()
    base_quit("no")
  }
}

# stoppable lets an interrupt end an answer, which has methods called that may be a cell's.
stoppable <- function(answer) function(request) {
  stopped <- function(...) {
    list(status = "error", ename = "interrupt", evalue = "the question was interrupted", traceback = list("Interrupted"))
  }
  session$interrupts <- 0L
  withRestarts(base_try(allowInterrupts(answer(request)), interrupt = stopped), cellard_interrupt = stopped)
}

kernel_info <- function(request) {
  list(
    protocol_version = "5.3",
    implementation = "IRkernel",
    implementation_version = session$irkernel,
    language_info = list(
      name = "R", version = session$version, mimetype = "text/x-r-source", file_extension = ".r",
      pygments_lexer = "r", codemirror_mode = "r"
    ),
    banner = R.version.string,
    help_links = list(),
    supported_features = list(FEATURE)
  )
}

execute <- function(request) {
  session$request <- request
  session$interrupts <- 0L
  parting$switches <- SWITCHES
  content <- request$content
  count <- session$count
  silent <- isTRUE(content$silent)
  if (!silent) {
    publish("execute_input", list(code = content$code, execution_count = count))
    if (!isFALSE(content$store_history)) {
      session$count <- count + 1L
    }
  }
  surroundings <- NULL
  failure <- tryCatch(
    {
      surroundings <- enter_surroundings(request$metadata$cellard)
      run_cell(content$code, count, silent)
    },
    error = function(e) failure_of(e, NULL)
  )
  if (forked()) {
    leave_child()
  }
  end_cell(silent)
  leave_surroundings(surroundings)
  if (is.null(failure)) {
    return(list(status = "ok", execution_count = count, payload = list(), user_expressions = no_names()))
  }
  if (!silent) {
    publish("error", failure)
  }
  c(list(status = "error", execution_count = count), failure)
}

# end_cell puts back what would take the output of the next cell elsewhere, and shows
# the last plot.
end_cell <- function(silent) {
  while (sink.number() > 0L) {
    sink()
  }
  if (sink.number("message") != 2L) {
    sink(type = "message")
  }
  tryCatch(finish_plots(silent), error = function(e) {
    say("A plot could not be shown: ", message_of(e), "\n")
  })
}

# leave_child ends a child that was forked by hand and came to the end of the cell:
# there is one kernel.
leave_child <- function() {
  tools::pskill(Sys.getpid(), tools::SIGKILL)
}

forget_interrupts <- function() {
  tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(e) NULL)
}

BUSY <- structure('{"execution_state":"busy"}', class = "json")
IDLE <- structure('{"execution_state":"idle"}', class = "json")

# no_names is an empty object of JSON.
no_names <- function() structure(list(), names = character())
