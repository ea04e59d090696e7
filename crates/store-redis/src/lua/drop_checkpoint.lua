-- fence
local ours, fence = saved()
if not ours then return {'foreign'} end
if not fence then return {'missing'} end
if less(ARGV[1], fence) then return {'not', '', fence} end
redis.call('DEL', KEYS[1])
return {'done'}
