# Plots: a cell that draws without having opened a device of its own draws PNG files,
# one a page, which are shown when they are complete: when the next page begins, and
# at the end of the cell.
#
# The size is that of the options repr.plot.width, repr.plot.height (inches) and
# repr.plot.res, as in IRkernel.

plots <- new.env(parent = emptyenv())
plots$devices <- 0L # that were opened
plots$pages <- 0L # that were begun
plots$size <- NULL # of the newest device

setup_plots <- function() {
  plots$directory <- file.path(directory, "plots")
  options(device = open_device)
  if (capabilities("cairo")) {
    options(bitmapType = "cairo")
  }
  for (hook in c("before.plot.new", "before.grid.newpage", "persp")) {
    setHook(hook, new_page, "append")
  }
}

plot_size <- function() {
  number <- function(name, default, low, high) {
    value <- getOption(name)
    if (!is.numeric(value) || length(value) != 1L || is.na(value)) value <- default
    min(max(value, low), high)
  }
  # At most 6,000 × 6,000 pixels, whatever the options say.
  size <- c(
    number("repr.plot.width", 7, 0.5, 100), number("repr.plot.height", 7, 0.5, 100),
    number("repr.plot.res", 120, 10, 1200)
  )
  size[[3L]] <- min(size[[3L]], 6000 / max(size[1:2]))
  size
}

# open_device is what R calls when something draws and no device is open.
open_device <- function(...) {
  if (forked()) {
    grDevices::pdf(NULL) # nobody can be shown what a child draws
    return(invisible())
  }
  dir.create(plots$directory, showWarnings = FALSE, recursive = TRUE, mode = "0700") # a cell may have removed it
  plots$devices <- plots$devices + 1L
  plots$size <- size <- plot_size()
  grDevices::png(page_pattern(plots$devices),
    width = size[[1L]], height = size[[2L]], units = "in", res = size[[3L]],
    type = if (capabilities("cairo")) "cairo" else "Xlib"
  )
  grDevices::dev.control(displaylist = "enable") # recordPlot, dev.copy
}

page_pattern <- function(device) file.path(plots$directory, sprintf("%06d-%%06d.png", device))

# ours_open are the numbers of the open devices that open_device made. A number is no
# proof: the cell may have closed ours and opened a file of its own.
ours_open <- function() {
  numbers <- grDevices::dev.list()
  paths <- vapply(.Devices[numbers], function(device) {
    path <- attr(device, "filepath")
    if (is.null(path)) "" else path
  }, "")
  numbers[startsWith(paths, paste0(plots$directory, "/"))]
}

# new_page is called before a page begins.
new_page <- function(...) {
  if (forked()) {
    return()
  }
  current <- grDevices::dev.cur()
  if (current %in% ours_open()) {
    plots$pages <- plots$pages + 1L
    show_pages()
    # A new size needs a new device.
    if (!identical(plot_size(), plots$size)) {
      grDevices::dev.off(current)
      open_device()
    }
  } else if (current == 1L) {
    plots$pages <- plots$pages + 1L
  }
}

plot_count <- function() plots$pages

# show_pages shows what is complete: a page's file is empty until it is.
show_pages <- function(main = FALSE) {
  files <- list.files(plots$directory, full.names = TRUE)
  files <- files[size_in_bytes(files) > 0L]
  files <- files[order(basename(files), method = "radix")] # order refuses paths that aren't ASCII
  for (file in files) {
    bytes <- read_file(file, "raw", size_in_bytes(file))
    unlink(file)
    data <- list("text/plain" = plot_text(bytes), "image/png" = bytes)
    publish_bundle(data, if (main && file == files[[length(files)]]) "execute_result" else "display_data")
  }
}

# size_in_bytes is file.size, which asks methods.
size_in_bytes <- function(files) .subset2(file.info(files, extra_cols = FALSE), "size")

# plot_text is a plot in words: its size stands in the file's header.
plot_text <- function(png) {
  number <- function(at) sum(as.integer(png[at + 0:3]) * 256^(3:0))
  sprintf("<plot of %.0f x %.0f pixels>", number(17L), number(21L))
}

# finish_plots closes the devices of open_device and shows their pages; the last one as
# the cell's result, if it is that.
finish_plots <- function(silent, main = FALSE) {
  mine <- ours_open()
  if (length(mine) > 0L) {
    current <- grDevices::dev.cur()
    for (number in mine) {
      grDevices::dev.off(number)
    }
    if (!current %in% mine && current != 1L) {
      grDevices::dev.set(current) # the cell's own
    }
  }
  if (silent) {
    unlink(list.files(plots$directory, full.names = TRUE))
  } else {
    show_pages(main)
  }
}
