# H: a script that looks names up and keeps seven columns, or prints what the service says: `Rscript find.R SERVICE`.
# The original reads JSON with a package; objects of this service have no other in them, so R's own functions do.
base <- paste0(commandArgs(TRUE)[1], "/wscatgeo/localidades/buscar/")
columns <- c("cvegeo", "cve_agee", "cve_agem", "cve_loc", "nom_loc", "latitud", "longitud")

member <- function(object, name) {
  found <- regmatches(object, regexec(paste0('"', name, '":"([^"]*)"'), object))
  vapply(found, function(parts) parts[2], "")
}

look_up <- function(name) {
  json <- paste(readLines(paste0(base, URLencode(name)), warn = FALSE, encoding = "UTF-8"), collapse = "")
  if (!startsWith(json, '{"datos":[')) return(cat(member(json, "mensaje"), "\n"))
  rows <- regmatches(json, gregexpr("\\{[^{}]*\\}", sub('],"metadatos".*', "", json)))[[1]]
  found <- as.data.frame(sapply(columns, function(name) member(rows, name), simplify = FALSE))
  write.table(found, sep = "|", quote = FALSE, row.names = FALSE, col.names = FALSE)
}

look_up("Ardillas de")
look_up("Nadie")
