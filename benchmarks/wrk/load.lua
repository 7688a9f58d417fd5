-- wrk ... -s load.lua URL                     requests the URL as it is,
-- wrk ... -s load.lua URL -- pages COUNT SEED for random pages out of COUNT, the same ones for the same SEED,
-- wrk ... -s load.lua URL -- targets FILE     for the lines of FILE in turn, again and again; prints JSON in the end.

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

local function targets(file)
  local prepared, last = {}, 0
  for line in io.lines(file) do
    prepared[#prepared + 1] = wrk.format(nil, line)
  end
  return function()
    last = last % #prepared + 1
    return prepared[last]
  end
end

function init(args)
  if args[1] == "pages" then
    request = pages(tonumber(args[2]), tonumber(args[3]))
  elseif args[1] == "targets" then
    request = targets(args[2])
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
