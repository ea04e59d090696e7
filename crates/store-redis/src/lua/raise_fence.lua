-- the number
local found = kind()
if found ~= 'none' then
  if found ~= 'string' then return {'foreign'} end
  local last = number(redis.call('GET', KEYS[1]))
  if not last then return {'foreign'} end
  if not less(last, ARGV[1]) then return {'done'} end
end
redis.call('SET', KEYS[1], ARGV[1])
return {'done'}
