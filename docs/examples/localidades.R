# INEGI's catalogue in R, with curl and without packages: source("localidades.R").
localidades_service <- "http://127.0.0.1:8000"
localidades_keys <- c("cvegeo", "clave", "municipio_clave", "estado_clave", "cve_ent", "cve_mun", "cvegeo_mun")

# Fetch a path, and try again for five minutes while the service is busy; stop with its sentence if it refuses.
localidades_fetch <- function(path, query, options = NULL) {
  file <- tempfile()
  values <- vapply(query, function(value) URLencode(enc2utf8(paste(value, collapse = ",")), TRUE), "")
  parameters <- paste0(names(query), "=", values, collapse = "&")
  address <- paste0(localidades_service, "/api/census/localidades/", path, "?", parameters)
  command <- c("-sS", "--retry", "99", "--retry-max-time", "300", "-o", file, "-w", "%{http_code}", options, address)
  status <- system2("curl", shQuote(command), stdout = TRUE)
  if (identical(status, "200")) return(file)
  said <- if (file.exists(file)) paste(readLines(file, warn = FALSE, encoding = "UTF-8"), collapse = "")
  said <- regmatches(said, gregexpr('"(detail|message)":"(\\\\.|[^"\\\\])*"', said))
  stop(paste(c(status, gsub('^"[a-z]+":"|"$', "", unlist(said))), collapse = " "), call. = FALSE)
}

# Put the columns match_... beside the rows of a data.frame; nombre = "sitio" names a column that is not recognized.
localidades_match <- function(rows, ...) {
  body <- tempfile()
  plain <- function(x) if (is.numeric(x)) ifelse(is.na(x), NA, formatC(x, digits = 15, format = "fg")) else x
  sent <- rows
  sent[] <- lapply(rows, plain) # 100000, where R would write 1e+05
  write.csv(sent, body, row.names = FALSE, na = "", fileEncoding = "UTF-8")
  csv <- c("-H", "Content-Type: text/csv", "--data-binary", paste0("@", body))
  answer <- localidades_fetch("match/", list(format = "csv", ...), csv)
  answer <- read.csv(answer, colClasses = "character", na.strings = "", encoding = "UTF-8", check.names = FALSE)
  stopifnot(nrow(answer) == nrow(rows))
  added <- answer[-seq_along(rows)]
  numbers <- grepl("_(score|margin)$", names(added))
  added[numbers] <- lapply(added[numbers], as.numeric)
  cbind(rows, added)
}

# All localities, or those that filters choose (estado_id = 14, cvegeo = "140390001"), with keys as text.
localidades_download <- function(...) {
  keys <- setNames(rep("character", length(localidades_keys)), localidades_keys)
  file <- localidades_fetch("download/", list(format = "csv", ...))
  read.csv(file, colClasses = keys, na.strings = "", encoding = "UTF-8")
}

# The places that a text may mean, the likeliest first.
localidades_suggest <- function(q, ...) {
  json <- readLines(localidades_fetch("suggest/", list(q = q, ...)), warn = FALSE, encoding = "UTF-8")
  places <- regmatches(json, gregexpr("\\{[^{}]*\\}", sub('^\\{"results":', "", json)))[[1]] # JSON without a package
  member <- function(name) gsub("\\\\(.)", "\\1", sub(paste0('.*"', name, '":"((\\\\.|[^"\\\\])*)".*'), "\\1", places))
  data.frame(kind = member("kind"), cvegeo = member("cvegeo"), label = member("label"))
}
