-- owner, TTL, whole, fence, fields
local found = kind()
if found == 'none' then
  if ARGV[3] ~= '1' then return {'missing'} end
elseif found ~= 'hash' then
  return {'foreign'}
else
  local there = redis.call('HMGET', KEYS[1], 'owner', 'fence')
  local owner, fence = there[1], number(there[2])
  if not owner or not fence then return {'foreign'} end
  if less(ARGV[4], fence) or (owner ~= ARGV[1] and not less(fence, ARGV[4])) then return {'not', owner, fence} end
end
store_fields(5, ARGV[2])
return {'done'}
