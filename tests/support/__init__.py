"""Code that several folders of tests share.

- A database: `postgres` creates and locks databases, `database` reads their contents, `pooler` and `service_address`
  put PgBouncer in front of them, `servers` starts, kills and replicates servers, and finds the embedded one.
- Data: `catalogue` writes files in INEGI's layout, `records` computes the expected records and responses, `downloads`
  has a large catalogue, `names` an invented index of names, `bulk` reads rows.
- The service: `application` runs it without a server, or on files; `wire` starts `serve` and other commands, and sends
  raw requests; `commands` runs commands in this process. `forkserver` makes `wire` fast.
- Responses: `pages` parses HTML and lists the pages to test, `browser` opens them in Chromium and validates them,
  `metrics` scrapes.
- The rest: `waiting` for a condition, `http_server` for scripted responses, `refusals` of hostile files, `machine` for
  ports, memory and programs.

Fixtures are in tests/conftest.py. Code for one folder is in that folder, beside its tests.
"""
