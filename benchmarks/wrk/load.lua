-- wrk ... -s load.lua URL                     requests the URL as it is,
-- wrk ... -s load.lua URL -- COUNT SEED       for random pages out of COUNT, the same ones for the same SEED; prints JSON.

local function pages(count, seed)
  math.randomseed(seed)
  local prepared = {}
  for page = 1, count do
    prepared[page] = wrk.format(nil, wrk.path .. "?page=" .. page)
  end
  return function()
    return prepared[math.random(count)]
  end
end

function init(args)
  if args[1] then
    request = pages(tonumber(args[1]), tonumber(args[2]))
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
