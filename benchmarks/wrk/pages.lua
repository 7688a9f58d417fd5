-- wrk ... -s pages.lua URL -- PAGES SEED
-- Asks for random pages out of PAGES (0: the URL as it is), the same ones for the same SEED; prints JSON in the end.

function init(args)
  local pages = tonumber(args[1])
  if pages == 0 then
    return
  end
  math.randomseed(tonumber(args[2]))
  local prepared = {}
  for page = 1, pages do
    prepared[page] = wrk.format(nil, wrk.path .. "?page=" .. page)
  end
  request = function()
    return prepared[math.random(pages)]
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.6f, "bytes": %d, "failed": %d, "p50_ms": %.3f, "p99_ms": %.3f, "max_ms": %.3f}\n',
    summary.requests, summary.duration / 1e6, summary.bytes,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3
  ))
end
