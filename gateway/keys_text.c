/*
 * Texts of the configuration to values: durations, sizes, names, sources of arguments.
 */
#include "gateway/keys.h"

bool keys_parse_ms(struct str text, uint64_t *ms)
{
    static const struct {
        struct str unit;
        uint64_t ms;
    } units[] = {
        {STR_INIT("ms"), 1},      {STR_INIT("s"), 1000},     {STR_INIT("m"), 60000},
        {STR_INIT("h"), 3600000}, {STR_INIT("d"), 86400000},
    };
    size_t digits = 0;
    uint64_t n = 0;

    while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9')
        digits++;
    if (!str_to_u64(str_sub(text, 0, digits), UINT64_C(1) << 40, &n))
        return false;
    if (digits == text.n) {
        *ms = 0;
        return n == 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (str_eq(str_sub(text, digits, text.n), units[i].unit)) {
            *ms = n * units[i].ms;
            return true;
        }
    }
    return false;
}

bool keys_parse_size(struct str text, uint64_t *bytes)
{
    static const struct {
        struct str unit;
        unsigned shift;
    } units[] = {
        {STR_INIT("B"), 0},    {STR_INIT("k"), 10}, {STR_INIT("KiB"), 10}, {STR_INIT("m"), 20},
        {STR_INIT("MiB"), 20}, {STR_INIT("g"), 30}, {STR_INIT("GiB"), 30},
    };
    size_t digits = 0;
    uint64_t n = 0;

    while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9')
        digits++;
    if (!str_to_u64(str_sub(text, 0, digits), UINT64_C(1) << 32, &n))
        return false;
    *bytes = n;
    if (digits == text.n)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (str_eq(str_sub(text, digits, text.n), units[i].unit)) {
            *bytes = n << units[i].shift;
            return true;
        }
    }
    return false;
}

bool keys_is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-'))
            return false;
    }
    return s.n != 0;
}

bool keys_parse_source(struct str text, struct source *out)
{
    static const struct {
        struct str prefix;
        enum source_kind kind;
        bool named; /* something must follow the dot */
    } forms[] = {
        {STR_INIT("path."), SOURCE_PATH, true},
        {STR_INIT("query."), SOURCE_QUERY, true},
        {STR_INIT("header."), SOURCE_HEADER, true},
        {STR_INIT("body."), SOURCE_BODY, true},
        {STR_INIT("body"), SOURCE_BODY, false},
        {STR_INIT("client.ip"), SOURCE_CLIENT_IP, false},
        {STR_INIT("request.id"), SOURCE_REQUEST_ID, false},
        {STR_INIT("request.method"), SOURCE_REQUEST_METHOD, false},
        {STR_INIT("request.path"), SOURCE_REQUEST_PATH, false},
        {STR_INIT("request.host"), SOURCE_REQUEST_HOST, false},
        {STR_INIT("const:"), SOURCE_CONST, true},
    };

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct str rest = str_sub(text, forms[i].prefix.n, text.n);

        if (!str_starts(text, forms[i].prefix) || (!forms[i].named && rest.n != 0))
            continue;
        *out = (struct source){.kind = forms[i].kind, .text = text, .name = rest};
        if (forms[i].kind == SOURCE_CONST || !forms[i].named)
            return true;
        if (forms[i].kind == SOURCE_QUERY && str_ends(rest, STR("[]"))) {
            out->all = true;
            out->name = rest = str_sub(rest, 0, rest.n - 2);
        }
        if (forms[i].kind == SOURCE_BODY || forms[i].kind == SOURCE_QUERY)
            return rest.n != 0;
        return keys_is_name(rest);
    }
    return false;
}
