-- says
local found = kind()
if found == 'none' then return {'missing'} end
if found ~= 'string' then return {'foreign'} end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'not', '', '0'} end
redis.call('DEL', KEYS[1])
return {'done'}
