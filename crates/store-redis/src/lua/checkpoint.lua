-- the JSON, TTL, fence, version
local ours, fence, version = saved()
if not ours then return {'foreign'} end
if fence and (less(ARGV[3], fence) or (fence == ARGV[3] and less(ARGV[4], version))) then return {'not', '', fence} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'done'}
