-- plan:task:instance, fence, lease, a holder that is gone or nothing
local ours, text, who, fence = held()
if not ours then return {'foreign'} end
local again = who == ARGV[1] and not less(ARGV[2], fence)
if text and not again and who .. ':' .. fence ~= ARGV[4] then return {'held', text} end
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. ARGV[2], 'PX', ARGV[3])
return {'done'}
