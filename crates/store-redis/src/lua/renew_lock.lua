-- plan:task:instance, fence, lease
local ours, text, who, fence = held()
if not ours then return {'foreign'} end
if not text then return {'missing'} end
if who ~= ARGV[1] or fence ~= ARGV[2] then return {'held', text} end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'done'}
