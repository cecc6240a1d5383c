-- wrk: POST of a 200-byte JSON argument list (static, so no Lua per request)
local body = '[{"email":"someone@example.com","id":1234567890123,"pad":"'
body = body .. string.rep("p", 200 - #body - 3) .. '"}]'
assert(#body == 200)
wrk.method = "POST"
wrk.body = body
wrk.headers["Content-Type"] = "application/json"
