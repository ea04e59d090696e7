-- the highest that is known from elsewhere; the counter is one of Redis and ends at 2^63, so that none of 19 digits is begun
local found = kind()
local last = '0'
if found ~= 'none' then
  if found ~= 'string' then return {'foreign'} end
  last = number(redis.call('GET', KEYS[1]))
  if not last then return {'foreign'} end
end
if less(last, ARGV[1]) then last = ARGV[1] end
if #last > 18 then return {'foreign'} end
redis.call('SET', KEYS[1], last)
redis.call('INCR', KEYS[1])
return {'fence', redis.call('GET', KEYS[1])}
