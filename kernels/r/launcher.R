# Starts the R kernel:
#   R --no-save --no-restore --no-init-file --slave -f launcher.R --args DIRECTORY CONNECTION_FILE
#
# The files cellard_*.R in the directory are its parts; cellard_kernel.R is where to
# begin. They are read into an environment whose parent is base's namespace: what they
# name is found there before anything that a cell defines, and yet the methods of a
# cell's classes are found.
local({
  directory <- commandArgs(TRUE)[[1L]]
  kernel <- new.env(parent = .BaseNamespaceEnv)
  kernel$directory <- directory
  for (file in list.files(directory, "^cellard_.*[.]R$", full.names = TRUE)) {
    sys.source(file, kernel, keep.source = FALSE)
  }
  kernel$start(commandArgs(TRUE)[[2L]])
})
