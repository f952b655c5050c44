# JSON: what jsonlite makes, and, for columns of a table, vectors of JSON texts.

json <- function(text) `class<-`(text, "json")

to_json <- function(value) {
  json(enc2utf8(unclass(jsonlite::toJSON(value,
    auto_unbox = TRUE, null = "null", na = "null", digits = NA, json_verbatim = TRUE, force = TRUE
  ))))
}

# valid makes text valid UTF-8, whatever bytes are in it.
valid <- function(text) {
  text <- enc2utf8(text)
  bad <- !is.na(text) & !validUTF8(text)
  if (any(bad)) {
    text[bad] <- iconv(text[bad], "UTF-8", "UTF-8", sub = "\ufffd")
  }
  text
}

CONTROL <- c(
  sprintf("\\u%04x", 1:7), "\\b", "\\t", "\\n", "\\u000b", "\\f", "\\r", sprintf("\\u%04x", 14:31)
)

# json_text makes each element of a character vector a string of JSON.
json_text <- function(text) {
  text <- gsub('(["\\\\])', "\\\\\\1", valid(text), perl = TRUE)
  odd <- grepl("[\001-\037]", text, perl = TRUE)
  if (any(odd)) {
    for (code in 1:31) {
      text[odd] <- gsub(intToUtf8(code), CONTROL[[code]], text[odd], fixed = TRUE)
    }
  }
  paste0('"', text, '"', recycle0 = TRUE)
}

# json_numbers makes each element of a numeric vector a number of JSON, in as few
# digits as stand for the same double.
json_numbers <- function(x) {
  x <- as.double(x)
  finite <- is.finite(x)
  out <- rep("null", length(x))
  text <- sprintf("%.15g", x[finite])
  for (digits in c("%.16g", "%.17g")) {
    rough <- as.double(text) != x[finite]
    text[rough] <- sprintf(digits, x[finite][rough])
  }
  out[finite] <- text
  out
}

# json_object puts texts of JSON together under names.
json_object <- function(names, values) {
  json(paste0("{", paste0(json_text(names), ":", values, recycle0 = TRUE, collapse = ","), "}"))
}
