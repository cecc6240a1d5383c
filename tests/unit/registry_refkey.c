#include "registry/refkey.h"

#include "tests/unit/registry_data.h"

static struct err e;

/* What `text` prints as, or "-" when it is no key. */
static const char *canonical(const char *text)
{
    static char out[REFKEY_TEXT_MAX + 1];
    struct refkey k;
    struct buf b;

    e.text[0] = '\0';
    if (!refkey_parse(str_from(text), &k, &e)) {
        ck_assert(e.text[0] != '\0');
        return "-";
    }
    buf_init(&b, REFKEY_TEXT_MAX);
    refkey_print(&k, &b);
    ck_assert(!b.failed && b.len < sizeof(out));
    memcpy(out, b.data, b.len);
    out[b.len] = '\0';
    buf_free(&b);
    return out;
}

START_TEST(text_forms)
{
    ck_assert_str_eq(canonical("a.b.C"), "a.b.C");
    ck_assert_str_eq(canonical("a.b.C:1.0.0"), "a.b.C:1.0.0");
    ck_assert_str_eq(canonical("a.b.C@g"), "a.b.C@g");
    ck_assert_str_eq(canonical("a.b.C:1.0@g:x@y"), "a.b.C:1.0@g:x@y");
    ck_assert_str_eq(canonical("a.b.Login$Iface"), "a.b.Login$Iface");
    ck_assert_str_eq(canonical("C:*@*"), "C:*@*");
    ck_assert_str_eq(canonical("C:@"), "C");
}
END_TEST

START_TEST(zero_version_is_none)
{
    ck_assert_str_eq(canonical("a.C:0.0.0"), "a.C");
    ck_assert_str_eq(canonical("a.C:0.0.0@g"), "a.C@g");
    ck_assert_str_eq(canonical("a.C:0.0.0.0"), "a.C:0.0.0.0");
}
END_TEST

START_TEST(bad_names)
{
    static const char *const bad[] = {
        "",         ".",        "..",     "a..b",  ".a",     "a.",     "1a",
        "a.1b",     "a/b",      "a b",    "a%2fb", "a-b",    "a\x01",  "a.b\xc3\xa4",
        "a.C:1/2",  "a.C@g/h",  "a.C:\n", "a@\t",  "a@\x7f", "a:\xff", "a@\xed\xa0\x80",
        "config/x", "a.C:../x", ":1@g",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(strcmp(canonical(bad[i]), "-") == 0, "taken: %s", bad[i]);
}
END_TEST

START_TEST(lengths)
{
    char text[400];
    struct refkey k;

    memset(text, 'a', sizeof(text));
    ck_assert(refkey_make((struct str){text, 255}, (struct str){text, 128}, (struct str){text, 128},
                          &k, &e));
    ck_assert(!refkey_make((struct str){text, 256}, STR_NONE, STR_NONE, &k, &e));
    ck_assert(!refkey_make(STR("a"), (struct str){text, 129}, STR_NONE, &k, &e));
    ck_assert(!refkey_make(STR("a"), STR_NONE, (struct str){text, 129}, &k, &e));
    ck_assert(!refkey_make(STR("a"), STR("1@2"), STR_NONE, &k, &e));
    ck_assert(!refkey_make((struct str){"a\0b", 3}, STR_NONE, STR_NONE, &k, &e));
}
END_TEST

START_TEST(equality)
{
    const struct refkey a = {STR("a"), STR("1"), STR("g")};
    struct refkey b = a;

    ck_assert(refkey_eq(&a, &b));
    b.group = STR("h");
    ck_assert(!refkey_eq(&a, &b));
    b = (struct refkey){STR("a"), STR("g"), STR("1")};
    ck_assert(!refkey_eq(&a, &b));
}
END_TEST

TEST_MAIN("registry_refkey", text_forms, zero_version_is_none, bad_names, lengths, equality)
