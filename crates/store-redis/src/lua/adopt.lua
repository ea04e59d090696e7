-- owner before, TTL, fence before, owner, fence
local found = kind()
if found == 'none' then return {'missing'} end
if found ~= 'hash' then return {'foreign'} end
local there = redis.call('HMGET', KEYS[1], 'owner', 'fence')
local owner, fence = there[1], number(there[2])
if not owner or not fence then return {'foreign'} end
local before = owner == ARGV[1] and fence == ARGV[3]
local already = owner == ARGV[4] and fence == ARGV[5]
if not before and not already then return {'not', owner, fence} end
redis.call('HSET', KEYS[1], 'owner', ARGV[4], 'fence', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'done'}
