"""The calls: method, Java types, arguments as JSON text.  answers.json holds what comes back."""

PERSON = ('{"id":7,"name":"Zo\u00eb","age":41,"active":true,"vip":null,"score":2.5,"balance":12345.6700,"favorite":"GREEN",'
          '"birthday":null,"address":{"streetName":"Main St","zip":10115},"others":null,"byName":null,"tags":["a","b"]}')


def case(method, types, args):
    return {"method": method, "types": types, "args": args}


CASES = [
    case("echoBoolean", ["boolean"], '[true]'),
    case("echoByte", ["byte"], '[-128]'),
    case("echoShort", ["short"], '[32767]'),
    case("echoInt", ["int"], '[-2147483648]'),
    case("echoLong", ["long"], '[9007199254740993]'),
    case("echoFloat", ["float"], '[1.5]'),
    case("echoDouble", ["double"], '[2.5]'),
    case("echoChar", ["char"], '["x"]'),
    case("echoBoxedBoolean", ["java.lang.Boolean"], '[false]'),
    case("echoBoxedInt", ["java.lang.Integer"], '[7]'),
    case("echoBoxedLong", ["java.lang.Long"], '[9007199254740993]'),
    case("echoBoxedDouble", ["java.lang.Double"], '[0.1]'),
    case("echoBoxedChar", ["java.lang.Character"], '["y"]'),
    case("echoString", ["java.lang.String"], '["Zoë 😀"]'),
    case("echoString", ["java.lang.String"], '[null]'),
    case("echoBigDecimal", ["java.math.BigDecimal"], '[12345678901234567890.10]'),
    case("echoBigInteger", ["java.math.BigInteger"], '[123456789012345678901234567890]'),
    case("echoEnum", ["demo.sample.api.Color"], '["GREEN"]'),
    case("echoDate", ["java.util.Date"], '[1600000000123]'),
    case("echoLocalDate", ["java.time.LocalDate"], '["2020-02-29"]'),
    case("echoLocalDateTime", ["java.time.LocalDateTime"], '["2020-02-29T13:14:15"]'),
    case("echoInstant", ["java.time.Instant"], '["2020-09-13T12:26:40.123Z"]'),
    case("times", [], '[]'),
    case("echoPerson", ["demo.sample.api.Person"], '[%s]' % PERSON),
    case("echoBox", ["demo.sample.api.Box"], '[{"code":1,"data":null,"items":null}]'),
    case("echoPersonList", ["java.util.List"], '[[%s]]' % PERSON),
    case("echoStringList", ["java.util.List"], '[["a","b"]]'),
    case("echoPersonMap", ["java.util.Map"], '[{"k":%s}]' % PERSON),
    case("echoLongMap", ["java.util.Map"], '[{"5":%s}]' % PERSON),
    case("echoAnyMap", ["java.util.Map"], '[{"a":1,"b":[true,null,"x"],"c":{"d":2.5}}]'),
    case("echoStringSet", ["java.util.Set"], '[["a"]]'),
    case("echoObject", ["java.lang.Object"], '[{"a":[1,2]}]'),
    case("dog", [], '[]'),
    case("circular", [], '[]'),
    case("sharedRefs", [], '[]'),
    case("echoBytes", ["byte[]"], '["AQID/w=="]'),
    case("echoIntArray", ["int[]"], '[[1,2,3]]'),
    case("echoStringArray", ["java.lang.String[]"], '[["a",null]]'),
    case("echoPersonArray", ["demo.sample.api.Person[]"], '[[%s]]' % PERSON),
    case("nothing", [], '[]'),
    case("nullString", [], '[]'),
    case("noArgs", [], '[]'),
    case("describe", ["demo.sample.api.Person", "java.lang.String", "int"], '[{"id":1},"x",3]'),
    case("over", ["java.lang.String"], '["a"]'),
    case("over", ["int"], '[5]'),
    case("over", ["java.lang.Integer", "java.lang.String"], '[5,"w"]'),
    case("varargs", ["java.lang.String[]"], '[["a","b"]]'),
    case("classOf", ["java.lang.Object"], '[5]'),
    case("classOf", ["java.lang.Object"], '[5000000000]'),
] + [case("special", ["java.lang.String"], '["%s"]' % k) for k in (
    "timestamp", "sqldate", "atomic", "uuid", "locale", "calendar", "optional", "chars", "longs", "bools", "doubles",
    "matrix", "mixed", "zoned", "bigs", "nan", "linked", "deep", "none")] + [
    case("throwChecked", ["java.lang.String"], '["m"]'),
    case("throwRuntime", ["java.lang.String"], '["m"]'),
    case("throwError", ["java.lang.String"], '["m"]'),
    case("throwNested", ["java.lang.String"], '["m"]'),
    case("slow", ["long"], '[10]'),
    case("future", ["java.lang.String", "long"], '["f",10]'),
    case("big", ["int"], '[100000]'),
    case("attachments", [], '[]'),
    case("setAttachment", ["java.lang.String", "java.lang.String"], '["k","v"]'),
    case("whoami", [], '[]'),
]
