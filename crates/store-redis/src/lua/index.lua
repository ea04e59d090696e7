-- task, TTL, unless there
local found = kind()
if found ~= 'none' then
  if found ~= 'string' or redis.call('STRLEN', KEYS[1]) > 128 then return {'foreign'} end
  if not string.match(redis.call('GET', KEYS[1]), '^[%w%._%-/]+$') then return {'foreign'} end
  if ARGV[3] == '1' then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return {'done'}
  end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'done'}
