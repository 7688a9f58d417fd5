"""Accept and Accept-Language as clients send them."""

CHROME = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
    "application/signed-exchange;v=b3;q=0.7"
)
# Those that get JSON whatever they are before, each in its own spelling.
PROGRAMS = (
    None,  # curl --header 'Accept:', Go
    "*/*",  # curl, requests, httpx, fetch, Postman, wget
    "application/json",
    "application/json, text/plain, */*",  # axios, Angular
    "application/json, text/javascript, */*; q=0.01",  # jQuery
    "application/json, */*;q=0.5",  # HTTPie
    "application/json;charset=UTF-8",
    "Application/JSON",
    "application/json, text/json, text/x-json, text/javascript, application/xml, text/xml",  # RestSharp
    "application/json;q=1.0,text/html;q=0.9",
    "text/html, application/json",  # equals: the service prefers JSON
    "application/geo+json, application/json;q=1, */*;q=0.1",
    "image/gif, image/jpeg, image/pjpeg, application/x-shockwave-flash, */*",  # Internet Explorer
)
BROWSERS = (
    CHROME,
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",  # Firefox, Safari
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,image/svg+xml,*/*;q=0.8",
    "text/html, application/xhtml+xml, image/jxr, */*; q=0.5",  # Edge before Chromium
    "text/html, application/xml;q=0.9, application/xhtml+xml, image/png, image/webp, */*;q=0.1",  # Opera 12
    "text/html",
    "TEXT/HTML",
    "text/html,application/json;q=0.9",
)
# What `test_media_type_through_nginx_is_that_which_the_service_chooses` does not make up.
OTHERS = (
    "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",  # Java's HttpURLConnection
    "application/xml,application/xhtml+xml,text/html;q=0.9,text/plain;q=0.8,image/png,*/*;q=0.5",  # old WebKit
    "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.8, */*;q=0.7",  # feed readers
    "image/avif,image/webp,*/*",  # an image of a page
    "application/json;q=-1",
    "application/json;q=1;q=0, text/html",
    'application/json;profile="a,b;q=0", text/html;q=0.9',
    'application/json;profile="unterminated, text/html',
    "text/html application/json",
    "\xe9/\xff",
    "text/html, " + "a/b, " * 1000 + "c/d",  # longer than the service reads
)
ACCEPTS = (*PROGRAMS, *BROWSERS, *OTHERS)
# One of each kind.
REPRESENTATIVE = (
    "*/*",
    "application/json",
    CHROME,
    "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
    "text/csv",
    "application/x-ndjson, */*",
    "application/problem+json",
    "text/*, application/json",
    "json",
)

LANGUAGES = (
    None,
    "es-MX,es;q=0.9,en;q=0.8",  # Chrome
    "es-MX,es;q=0.8,en-US;q=0.5,en;q=0.3",  # Firefox
    "es-419,es;q=0.9",
    "en-US,en;q=0.9,es;q=0.8",
    "de-DE,de;q=0.9,en;q=0.8",
    "nah, es;q=0.5",
    "español",
    "es;level=1, en",
    "",
)
