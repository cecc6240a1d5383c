#include "registry/refkey.h"

#include "base/compiler.h"
#include "registry/url.h"

/* A bit per ASCII character: A-Z a-z _ $; and 0-9. */
static const uint64_t letters[4] = {UINT64_C(1) << '$', 0x07fffffe87fffffe, 0, 0};
static const uint64_t digits[4] = {UINT64_C(0x3ff) << '0', 0, 0, 0};

static bool is_in(const uint64_t *set, uint8_t c)
{
    return set[c >> 6] >> (c & 63) & 1;
}

/* Java names joined by dots: [A-Za-z_$][A-Za-z0-9_$]*(\.…)*.  Runs for every request of the direct form. */
static bool interface_ok(struct str s)
{
    bool at_start = true;

    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.p[i];

        if (LIKELY(is_in(letters, c)) || (!at_start && is_in(digits, c)))
            at_start = false;
        else if (c == '.' && !at_start)
            at_start = true;
        else
            return false;
    }
    return !at_start; /* also false for the empty text */
}

static bool part_ok(struct str s)
{
    return s.n <= REFKEY_PART_MAX && str_find(s, '/') == s.n && url_text_ok(s);
}

bool refkey_make(struct str interface, struct str version, struct str group, struct refkey *out,
                 struct err *e)
{
    if (interface.n > REFKEY_INTERFACE_MAX || !interface_ok(interface)) {
        err_set(e, "interface must be a Java name of at most %d bytes", REFKEY_INTERFACE_MAX);
        return false;
    }
    /* '@' would make the text form ambiguous */
    if (!part_ok(version) || str_find(version, '@') != version.n) {
        err_set(e, "version must be at most %d bytes of text without \"/\" and \"@\"",
                REFKEY_PART_MAX);
        return false;
    }
    if (!part_ok(group)) {
        err_set(e, "group must be at most %d bytes of text without \"/\"", REFKEY_PART_MAX);
        return false;
    }
    if (str_is(version, "0.0.0"))
        version = STR_NONE;
    *out = (struct refkey){interface, version, group};
    return true;
}

bool refkey_parse(struct str text, struct refkey *out, struct err *e)
{
    struct str group = STR_NONE;
    struct str version = STR_NONE;
    struct str interface = str_cut(str_cut(text, '@', &group), ':', &version);

    return refkey_make(interface, version, group, out, e);
}

void refkey_print(const struct refkey *k, struct buf *out)
{
    buf_add_str(out, k->interface);
    if (k->version.n != 0) {
        buf_add_u8(out, ':');
        buf_add_str(out, k->version);
    }
    if (k->group.n != 0) {
        buf_add_u8(out, '@');
        buf_add_str(out, k->group);
    }
}

bool refkey_eq(const struct refkey *a, const struct refkey *b)
{
    return str_eq(a->interface, b->interface) && str_eq(a->version, b->version) &&
           str_eq(a->group, b->group);
}
