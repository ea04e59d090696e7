-- plan:task:instance, fence or 0 for any
local ours, text, who, fence = held()
if not ours then return {'foreign'} end
if not text then return {'missing'} end
if who ~= ARGV[1] or (ARGV[2] ~= '0' and fence ~= ARGV[2]) then return {'held', text} end
redis.call('DEL', KEYS[1])
return {'done'}
