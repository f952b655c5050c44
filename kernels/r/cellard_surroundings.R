# What a cell was given besides its code: environment variables, a directory.
#
# They come in the metadata of the execute_request, under "cellard", and so never
# touch the cell's text. After the cell the old ones are back, unless the cell has
# changed them itself.

# enter_surroundings sets them. When it fails nothing is changed.
enter_surroundings <- function(given) {
  names <- names(given$env)
  values <- if (length(names) > 0L) vapply(given$env, as.character, "") else character()
  wrong <- names[names == "" | grepl("=", names, fixed = TRUE)]
  if (length(wrong) > 0L) {
    refuse(paste0("not an environment variable: ", encodeString(wrong[[1L]], quote = '"')))
  }
  before <- list(names = names, values = values, old = Sys.getenv(names, unset = NA, names = FALSE))
  if (length(given$cwd) == 1L && nzchar(given$cwd)) {
    old <- getwd() # NULL where the directory is gone
    tryCatch(setwd(given$cwd), error = function(e) {
      refuse(paste0("the directory of the cell can't be entered: ", given$cwd), "InvalidDirectory") # as in every language
    })
    before$old_directory <- old
    before$directory <- getwd()
  }
  if (length(names) > 0L) {
    do.call(Sys.setenv, structure(lapply(unname(values), identity), names = names))
  }
  before
}

leave_surroundings <- function(before) {
  for (i in seq_along(before$names)) {
    name <- before$names[[i]]
    if (!identical(Sys.getenv(name, unset = NA, names = FALSE), before$values[[i]])) {
      next # the cell's own change
    }
    if (is.na(before$old[[i]])) {
      Sys.unsetenv(name)
    } else {
      do.call(Sys.setenv, structure(list(before$old[[i]]), names = name))
    }
  }
  if (!is.null(before$old_directory) && identical(getwd(), before$directory)) {
    tryCatch(setwd(before$old_directory), error = function(e) NULL) # it can no longer be entered: stay
  }
}
