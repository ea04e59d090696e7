-- owner, TTL, whole, of which state or nothing, fields
local found = kind()
if found == 'none' then
  if ARGV[3] ~= '1' then return {'missing'} end
elseif found ~= 'hash' then
  return {'foreign'}
else
  local there = redis.call('HMGET', KEYS[1], 'owner', 'asOf')
  local owner = there[1]
  if not owner or owner == '' then return {'foreign'} end
  if owner ~= ARGV[1] or older(ARGV[4], there[2]) then return {'not', owner, '0'} end
end
store_fields(5, ARGV[2])
return {'done'}
