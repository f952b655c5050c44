# The five sockets, and messages on them: https://jupyter-client.readthedocs.io/en/stable/messaging.html

wire <- new.env(parent = emptyenv())
wire$sent <- 0L

MARK <- charToRaw("<IDS|MSG>")

open_sockets <- function(connection_file) {
  info <- jsonlite::parse_json(paste(readLines(connection_file, warn = FALSE), collapse = "\n"))
  set_key(info$key)
  wire$prefix <- paste0(digest::digest(list(info, Sys.time(), Sys.getpid()), "md5"), "_")
  wire$context <- pbdZMQ::zmq.ctx.new()
  types <- pbdZMQ::ZMQ.ST()
  options <- pbdZMQ::ZMQ.SO()
  wire$sockets <- list()
  for (channel in c("hb", "iopub", "control", "stdin", "shell")) {
    type <- switch(channel, hb = types$REP, iopub = types$PUB, types$ROUTER)
    socket <- pbdZMQ::zmq.socket(wire$context, type)
    pbdZMQ::zmq.setsockopt(socket, options$LINGER, 1000L)
    if (type == types$ROUTER) {
      pbdZMQ::zmq.setsockopt(socket, options$ROUTER_HANDOVER, 1L)
    } else if (channel == "iopub") {
      # By default a PUB socket drops what a reader can't take in time. This one waits.
      pbdZMQ::zmq.setsockopt(socket, options$XPUB_NODROP, 1L)
    }
    between <- if (info$transport == "ipc") "-" else ":"
    address <- paste0(info$transport, "://", info$ip, between, info[[paste0(channel, "_port")]])
    if (pbdZMQ::zmq.bind(socket, address) != 0L) {
      stop("the socket could not be bound: ", address)
    }
    wire$sockets[[channel]] <- socket
  }
}

close_sockets <- function() {
  for (socket in wire$sockets) {
    pbdZMQ::zmq.close(socket)
  }
  pbdZMQ::zmq.ctx.destroy(wire$context)
}

# poll waits until messages have come, for so many milliseconds at most (-1: no
# bound), and names the channels that have some.
poll <- function(channels, timeout = -1L) {
  # What has come is only looked at after a success: after an interrupted call
  # pbdZMQ has nothing but uninitialised memory there.
  count <- pbdZMQ::zmq.poll(wire$sockets[channels], rep(1L, length(channels)), timeout)[[1L]]
  if (count <= 0L) {
    return(character())
  }
  has <- vapply(seq_along(channels), function(i) bitwAnd(pbdZMQ::zmq.poll.get.revents(i), 1L) != 0L, NA)
  channels[has]
}

# beat answers on the heartbeat's socket.
beat <- function() {
  frame <- pbdZMQ::zmq.msg.recv(wire$sockets$hb, unserialize = FALSE)
  send_frame(wire$sockets$hb, frame, 0L)
}

# receive takes one message; NULL for one that is not signed as it should be.
receive <- function(channel) {
  frames <- pbdZMQ::zmq.recv.multipart(wire$sockets[[channel]], unserialize = FALSE)
  at <- which(vapply(frames, identical, NA, MARK))[1L]
  if (is.na(at) || length(frames) < at + 5L) {
    return(NULL)
  }
  parts <- frames[at + 2:5]
  if (nzchar(wire$key) && !identical(rawToChar(frames[[at + 1L]]), sign_parts(parts))) {
    return(NULL)
  }
  read <- function(part) {
    text <- rawToChar(part)
    Encoding(text) <- "UTF-8"
    jsonlite::parse_json(text)
  }
  list(
    header = read(parts[[1L]]), header_json = parts[[1L]], metadata = read(parts[[3L]]),
    content = read(parts[[4L]]), identities = frames[seq_len(at - 1L)]
  )
}

# now_text is the time as ISO 8601. R's own ways to write it ask methods.
now_text <- function() {
  t <- unclass(.Internal(as.POSIXlt(unclass(Sys.time()), "UTC")))
  seconds <- floor(.subset2(t, "sec") * 1e6) / 1e6
  sprintf(
    "%04d-%02d-%02dT%02d:%02d:%09.6fZ", .subset2(t, "year") + 1900L, .subset2(t, "mon") + 1L, .subset2(t, "mday"),
    .subset2(t, "hour"), .subset2(t, "min"), seconds
  )
}

# send sends a message that answers to a request. The content is a list for JSON, or
# JSON already.
send <- function(channel, type, content, request) {
  if (forked()) {
    return(invisible())
  }
  keep_out({
    wire$sent <- wire$sent + 1L
    header <- paste0(
      '{"msg_id":"', wire$prefix, wire$sent, '","session":', json_text(as.character(request$header$session)),
      ',"username":"cellard","date":"', now_text(),
      '","msg_type":"', type, '","version":"5.3"}'
    )
    if (!inherits(content, "json")) {
      content <- to_json(content)
    }
    parts <- list(charToRaw(header), request$header_json, charToRaw("{}"), charToRaw(content))
    frames <- c(
      if (channel == "iopub") list(charToRaw(type)) else request$identities,
      list(MARK, charToRaw(sign_parts(parts))), parts
    )
    for (i in seq_along(frames)) {
      send_frame(wire$sockets[[channel]], frames[[i]], if (i < length(frames)) 2L else 0L)
    }
  })
}

# publish sends a message of the running cell to all.
publish <- function(type, content) {
  if (!is.null(session$request)) {
    send("iopub", type, content, session$request)
  }
}

# send_frame waits for room, also when a signal breaks the wait.
send_frame <- function(socket, frame, flags) {
  while (pbdZMQ::zmq.send(socket, frame, flags) < 0L) {
  }
}

sign_parts <- function(parts) {
  if (!nzchar(wire$key)) {
    return("")
  }
  # HMAC by its definition (RFC 2104): digest's own spends most of its time on the key.
  inner <- digest::digest(c(wire$inner, unlist(parts)), "sha256", serialize = FALSE, raw = TRUE)
  digest::digest(c(wire$outer, inner), "sha256", serialize = FALSE)
}

# set_key makes what sign_parts needs of the key.
set_key <- function(key) {
  wire$key <- key
  bytes <- charToRaw(key)
  if (length(bytes) > 64L) {
    bytes <- digest::digest(bytes, "sha256", serialize = FALSE, raw = TRUE)
  }
  bytes <- c(bytes, raw(64L - length(bytes)))
  wire$inner <- xor(bytes, as.raw(0x36))
  wire$outer <- xor(bytes, as.raw(0x5c))
}
