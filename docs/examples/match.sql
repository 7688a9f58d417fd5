-- Every column as text: keys keep their leading zeros.
CREATE TABLE visits AS FROM read_csv('visits.matched.csv', all_varchar = true);
CREATE TABLE places AS FROM read_csv('localidades.csv', all_varchar = true);

SELECT folio, cvegeo, nombre, poblacion
FROM visits JOIN places ON cvegeo = match_cvegeo
WHERE match_outcome IN ('exact', 'sure')
ORDER BY folio;
