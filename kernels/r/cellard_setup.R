# What is set before the first cell: options, the locale, where packages go, and the
# user's own profile.

setup_options <- function() {
  options(
    # No colours, and nothing that takes a terminal.
    crayon.enabled = FALSE, cli.num_colors = 1L, cli.dynamic = FALSE,
    menu.graphics = FALSE, help_type = "text", device.ask.default = FALSE,
    editor = function(...) stop("there is no editor here: write the file by code", call. = FALSE),
    pager = function(files, header, title, delete.file) {
      for (file in files) {
        # Underlined and bold, as a printer would do it: a letter, a backspace, a letter.
        writeLines(gsub(".\b", "", readLines(file, warn = FALSE)))
      }
      if (isTRUE(delete.file)) unlink(files)
    },
    browser = function(url, ...) cat("a browser would show: ", url, "\n", sep = ""),
    # IRdisplay's functions, and what is built on them, show by these.
    jupyter.in_kernel = TRUE, jupyter.rich_display = TRUE,
    jupyter.base_display_func = function(data, metadata = NULL) publish_bundle(data, metadata = metadata),
    jupyter.clear_output_func = function(wait = TRUE) {
      publish("clear_output", list(wait = isTRUE(wait)))
      part()
    }
  )
  # The arguments are the kernel's, not those of a script in a cell.
  override("base", "commandArgs", function(trailingOnly = FALSE) if (trailingOnly) character() else "R")
  override("base", "warnings", last_warnings)
}

# setup_interrupts makes R's own handler known to its Sys.sleep, which puts one of its own
# in place while it waits, and remembers the one before only then: a first wait that was
# interrupted in between left none, and the next interrupt killed R.
setup_interrupts <- function() Sys.sleep(PAUSE)

# setup_locale makes text UTF-8, for R and for its children.
setup_locale <- function() {
  if (isTRUE(l10n_info()[["UTF-8"]])) {
    return()
  }
  Sys.unsetenv("LC_ALL")
  for (locale in c("C.UTF-8", "en_US.UTF-8", "UTF-8")) {
    if (nzchar(suppressWarnings(Sys.setlocale("LC_CTYPE", locale)))) {
      Sys.setenv(LC_CTYPE = locale)
      return()
    }
  }
}

# setup_temp lets children have their own place for temporary files: the session's is
# removed with it.
setup_temp <- function() {
  place <- Sys.getenv("CELLARD_TMPDIR", NA)
  if (is.na(place)) {
    return()
  }
  Sys.unsetenv("CELLARD_TMPDIR")
  if (nzchar(place)) Sys.setenv(TMPDIR = place) else Sys.unsetenv("TMPDIR")
}

# setup_library makes a library that packages can be installed into. R has the user's
# own on its path only if it was there at the start.
setup_library <- function() {
  if (any(file.access(.libPaths(), 2L) == 0L)) {
    return()
  }
  places <- c(strsplit(Sys.getenv("R_LIBS_USER"), ":", fixed = TRUE)[[1L]], file.path(directory, "library"))
  for (place in path.expand(places)) {
    if (nzchar(place) && suppressWarnings(dir.create(place, recursive = TRUE, showWarnings = FALSE) || dir.exists(place)) &&
      file.access(place, 2L) == 0L) {
      .libPaths(c(place, .libPaths()))
      Sys.setenv(R_LIBS_USER = place) # for R in a child
      return()
    }
  }
}

# read_profile reads the user's or the project's profile as R does at its start, but
# after the kernel's packages: one that fails, or changes the library, costs no kernel.
read_profile <- function() {
  # R's own script empties R_PROFILE_USER where it is not to read it, for all children.
  profile <- Sys.getenv("CELLARD_R_PROFILE")
  Sys.unsetenv(c("R_PROFILE_USER", "CELLARD_R_PROFILE"))
  if (nzchar(profile)) {
    Sys.setenv(R_PROFILE_USER = profile)
  }
  files <- if (nzchar(profile)) path.expand(profile) else c(".Rprofile", path.expand("~/.Rprofile"))
  file <- files[utils::file_test("-f", files)]
  if (length(file) > 0L) {
    tryCatch(sys.source(file[[1L]], globalenv(), keep.source = FALSE), error = function(e) {
      cat(file[[1L]], ": ", message_of(e), "\n", sep = "", file = stderr())
    })
  }
}

# setup_tools puts what cells may call where they find it, behind their own.
setup_tools <- function() {
  tools <- list(display = display, display_file = display_file, View = function(x, title) display(x))
  attach(tools, name = "tools:cellard", warn.conflicts = FALSE)
}
