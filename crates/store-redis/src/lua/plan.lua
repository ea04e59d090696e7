-- owner, TTL, whole, fields
local found = kind()
if found == 'none' then
  if ARGV[3] ~= '1' then return {'missing'} end
elseif found ~= 'hash' then
  return {'foreign'}
else
  local owner = redis.call('HGET', KEYS[1], 'owner')
  if not owner or owner == '' then return {'foreign'} end
  if owner ~= ARGV[1] then return {'not', owner, '0'} end
end
store_fields(4, ARGV[2])
return {'done'}
