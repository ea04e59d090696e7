-- owner, TTL, whole, fence, of which state or nothing, fields
local found = kind()
if found == 'none' then
  if ARGV[3] ~= '1' then return {'missing'} end
elseif found ~= 'hash' then
  return {'foreign'}
else
  local there = redis.call('HMGET', KEYS[1], 'owner', 'fence', 'asOf')
  local owner, fence = there[1], number(there[2])
  if not owner or not fence then return {'foreign'} end
  local refused = less(ARGV[4], fence) or (owner ~= ARGV[1] and not less(fence, ARGV[4]))
  if ARGV[5] ~= '' and there[3] then refused = owner ~= ARGV[1] or older(ARGV[5], there[3]) end
  if refused then return {'not', owner, fence} end
end
store_fields(6, ARGV[2])
return {'done'}
