# Match the rows of a file to keys, and join the catalogue's columns to those that are certain.
service <- c(commandArgs(TRUE), "http://127.0.0.1:8000")[1]
localities <- paste0(service, "/api/census/localidades")

# Every column as text: keys keep their leading zeros, and no name is taken for a missing value.
read_text <- function(options) {
  lines <- system(paste0("curl -sf ", options), intern = TRUE)
  stopifnot(is.null(attr(lines, "status"))) # of curl, if it failed
  read.csv(text = lines, colClasses = "character", na.strings = character(), encoding = "UTF-8")
}

body <- "-H 'Content-Type: text/csv' --data-binary @visits.csv"
visits <- read_text(paste0(body, " '", localities, "/match/'"))
certain <- visits$match_outcome %in% c("exact", "sure")
places <- read_text(paste0("'", localities, "/download/?format=csv&estado_id=14'"))
joined <- merge(visits[certain, ], places, by.x = "match_cvegeo", by.y = "cvegeo")
print(joined[order(joined$folio), c("folio", "match_cvegeo", "nombre", "poblacion")], row.names = FALSE)
write.csv(visits[!certain, ], "to-decide.csv", row.names = FALSE, fileEncoding = "UTF-8")
