-- Numbers are compared as text: those of Lua are exact only up to 2^53.
local function number(text)
  if not text or not string.match(text, '^%d+$') then return nil end
  return (string.gsub(text, '^0+(%d)', '%1'))
end
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
-- Whether MADE:SEQUENCE is of an earlier state than another; nothing is known of what is none.
local function older(a, b)
  local made, seq = string.match(a, '^(%d+):(%d+)$')
  local made_there, seq_there = string.match(b or '', '^(%d+):(%d+)$')
  if not made or not made_there then return false end
  if made ~= made_there then return less(made, made_there) end
  return less(seq, seq_there)
end
local function kind()
  return redis.call('TYPE', KEYS[1]).ok
end
-- From ARGV[at]: how many fields are no longer there, which, and then those that are, with their values.
local function store_fields(at, ttl)
  local gone = tonumber(ARGV[at])
  if gone > 0 then redis.call('HDEL', KEYS[1], unpack(ARGV, at + 1, at + gone)) end
  redis.call('HSET', KEYS[1], unpack(ARGV, at + gone + 1))
  redis.call('PEXPIRE', KEYS[1], ttl)
end
-- Who has the lock: the text, plan:task:instance, and the fence; nothing of that if nobody has; false if it is none of ours.
local function held()
  local found = kind()
  if found == 'none' then return true end
  if found ~= 'string' then return false end
  local text = redis.call('GET', KEYS[1])
  local who, fence = string.match(text, '^([^:]+:[^:]+:[^:]+):(%d+)$')
  if not who then return false end
  return true, text, who, number(fence)
end
-- Fence and version of the checkpoint: they are its last two fields. No fence if there is none; false if it is none of ours.
local function saved()
  local found = kind()
  if found == 'none' then return true end
  if found ~= 'string' then return false end
  local head = redis.call('GETRANGE', KEYS[1], 0, 26)
  local version, fence = string.match(redis.call('GETRANGE', KEYS[1], -80, -1), ',"version":(%d+),"fence":(%d+)}$')
  if head ~= '{"lastCompletedStageIndex":' or not version then return false end
  return true, number(fence), number(version)
end
