# Match the rows of a file to keys, with the name and the population of the places that are certain.
service <- c(commandArgs(TRUE), "http://127.0.0.1:8000")[1]
address <- paste0(service, "/api/census/localidades/match/?fields=nombre,poblacion")

# Every column as text: keys keep their leading zeros, and no name is taken for a missing value.
read_text <- function(options) {
  lines <- system(paste0("curl -sf ", options), intern = TRUE)
  stopifnot(is.null(attr(lines, "status"))) # of curl, if it failed
  read.csv(text = lines, colClasses = "character", na.strings = character(), encoding = "UTF-8")
}

body <- "-H 'Content-Type: text/csv' --data-binary @visits.csv"
visits <- read_text(paste0(body, " '", address, "'"))
certain <- visits$match_outcome %in% c("exact", "sure")
print(visits[certain, c("folio", "match_cvegeo", "match_nombre", "match_poblacion")], row.names = FALSE)
write.csv(visits[!certain, ], "to-decide.csv", row.names = FALSE, fileEncoding = "UTF-8")
