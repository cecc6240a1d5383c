/*
 * JSON arguments -> Hessian2: the tables of docs/JSON.md part A, row by row, as exact bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <check.h>

#include "base/hash.h"
#include "codec/json_args.h"

enum { OUT_MAX = 8 * 1024 * 1024 };

static struct args_error error;
static struct args_opts opts;
static char hex[4096];

static void fresh_options(void)
{
    opts = (struct args_opts){.max_depth = 128};
}

/* The bytes in hexadecimal, or the error as "CODE pointer detail". */
static const char *encode_n(const char *type, struct str json)
{
    static const char *const codes[] = {"ok", "JSON", "ARG", "TYPE", "LARGE"};
    struct jtype t;
    struct arena a;
    struct err e = {0};
    struct buf out;
    size_t n = 0;

    arena_init(&a);
    buf_init(&out, OUT_MAX);
    if (type != NULL)
        ck_assert_msg(jtype_parse(str_from(type), &a, &t, &e), "%s: %s", type, e.text);
    const struct arg arg = {.json = json, .type = type != NULL ? &t : NULL};

    buf_add_u8(&out, '!'); /* what was there before stays */
    if (arg_encode(&arg, &opts, &out, &error) != ARGS_OK) {
        ck_assert_uint_eq(out.len, 1);
        snprintf(hex, sizeof(hex), "%s %s %.256s", codes[error.result], error.pointer,
                 error.detail);
    } else {
        hex[0] = '\0';
        for (size_t i = 1; i < out.len && n + 3 < sizeof(hex); i++)
            n += (size_t)snprintf(hex + n, sizeof(hex) - n, "%02x", out.data[i]);
    }
    ck_assert_uint_eq(out.data[0], '!');
    buf_free(&out);
    arena_free(&a);
    return hex;
}

static const char *encode(const char *type, const char *json)
{
    return encode_n(type, str_from(json));
}

struct row {
    const char *type;
    const char *json;
    const char *want; /* bytes, or the beginning of an error */
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *got = encode(rows[i].type, rows[i].json);
        bool is_error = strchr(rows[i].want, ' ') != NULL;
        bool same = is_error ? strncmp(got, rows[i].want, strlen(rows[i].want)) == 0
                             : strcmp(got, rows[i].want) == 0;

        ck_assert_msg(same, "%s %s: got %s, want %s",
                      rows[i].type != NULL ? rows[i].type : "natural", rows[i].json, got,
                      rows[i].want);
    }
}

START_TEST(booleans)
{
    static const struct row rows[] = {
        {"boolean", "true", "54"},
        {"boolean", "\"false\"", "46"},
        {"boolean", "\"\\u0074rue\"", "54"},
        {"java.lang.Boolean", " false ", "46"},
        {"java.lang.Boolean", "null", "4e"},
        {"boolean", "null", "ARG  null is not a boolean"},
        {"boolean", "\"yes\"", "ARG  \"yes\" is not a boolean"},
        {"boolean", "1", "ARG  1 is not a boolean"},
        {"boolean", "\"TRUE\"", "ARG "},
        {"boolean", "[]", "ARG  an array is not a boolean"},
    };

    check_rows(rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(whole_numbers)
{
    static const struct row rows[] = {
        {"byte", "127", "c87f"},
        {"byte", "-128", "c780"},
        {"byte", "300", "ARG  300 is not a byte"},
        {"byte", "128", "ARG "},
        {"java.lang.Short", "32767", "d47fff"},
        {"short", "70000", "ARG  70000 is not a short"},
        {"int", "5", "95"},
        {"int", "5.0", "95"},
        {"int", "5e0", "95"},
        {"int", "500e-2", "95"},
        {"int", "-0", "90"},
        {"int", "\"41\"", "b9"},
        {"int", "\"\\u0035\"", "95"},
        {"int", "41.5", "ARG  41.5 is not a int"},
        {"int", "\"\"", "ARG "},
        {"int", "\" 5\"", "ARG "},
        {"int", "\"+5\"", "ARG "},
        {"int", "\"0x5\"", "ARG "},
        {"int", "1099511627776", "ARG  1099511627776 is not a int"},
        {"int", "2147483647", "497fffffff"},
        {"int", "-2147483648", "4980000000"},
        {"int", "2147483648", "ARG "},
        {"int", "1e999999999", "ARG "},
        {"int", "1e9999999999", "ARG "},
        {"int", "0e999999999", "90"},
        {"int", "true", "ARG  true is not a int"},
        {"java.lang.Integer", "null", "4e"},
        {"long", "5", "e5"},
        {"long", "9007199254740993", "4c0020000000000001"},
        {"long", "\"9223372036854775807\"", "4c7fffffffffffffff"},
        {"long", "-9223372036854775808", "4c8000000000000000"},
        {"long", "9223372036854775808", "ARG "},
        {"long", "9.223372036854775807e18", "4c7fffffffffffffff"},
        {"long", "1e18", "4c0de0b6b3a7640000"},
        {"java.lang.Long", "{}", "ARG  an object is not a java.lang.Long"},
    };

    check_rows(rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(broken_numbers)
{
    static const struct row rows[] = {
        {"double", "1.5", "5f000005dc"},
        {"double", "1", "5c"},
        {"double", "-0.0", "5b"},
        {"double", "100000", "5f05f5e100"},
        {"double", "0.1", "5f00000064"},
        {"double", "3.141592653589793", "44400921fb54442d18"},
        {"double", "\"NaN\"", "447ff8000000000000"},
        {"double", "\"Infinity\"", "447ff0000000000000"},
        {"double", "\"-Infinity\"", "44fff0000000000000"},
        {"double", "\"1.5\"", "5f000005dc"},
        {"double", "1.7976931348623157e308", "447fefffffffffffff"},
        {"double", "1e309", "ARG  1e309 is not a double"},
        {"double", "5e-324", "440000000000000001"},
        {"double", "1e-400", "5b"},
        {"double", "\"nan\"", "ARG "},
        {"double", "\"0x1p3\"", "ARG "},
        {"double", "\"\"", "ARG "},
        {"double", "true", "ARG "},
        {"float", "3.4028234663852886e38", "4447efffffe0000000"},
        {"float", "3.5e38", "ARG  3.5e38 is not a float"},
        {"java.lang.Float", "0.5", "5f000001f4"},
        /* more digits than fit a small buffer; the last one decides about the rounding */
        {"double",
         "0.10000000000000000555111512312578270211815834045410156250000000000000000000000",
         "5f00000064"},
        {"double", "1.00000000000000011102230246251565404236316680908203125000000000000000000000",
         "5c"},
        {"double", "1.00000000000000011102230246251565404236316680908203125000000000000000000001",
         "443ff0000000000001"},
        {"java.lang.Number", "5", "95"},
        {"java.lang.Number", "4294967296", "4c0000000100000000"},
        {"java.lang.Number", "1.5", "5f000005dc"},
        {"java.lang.Number", "1.2345678901234567890123", "443ff3c0ca428c59fb"},
        {"java.lang.Number", "9223372036854775808", "ARG "},
        {"java.lang.Number", "\"5\"", "ARG  \"5\" is not a java.lang.Number"},
    };

    check_rows(rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(exact_digits)
{
    static const struct row rows[] = {
        {"java.math.BigDecimal", "1.10", "04312e3130"},
        {"java.math.BigDecimal", "\"0.10\"", "04302e3130"},
        {"java.math.BigDecimal", "10000000.00", "0b31303030303030302e3030"},
        {"java.math.BigDecimal", "12345678901234567890.10",
         "1731323334353637383930313233343536373839302e3130"},
        {"java.math.BigDecimal", "9007199254740993", "1039303037313939323534373430393933"},
        {"java.math.BigDecimal", "1E+400", "0631452b343030"},
        {"java.math.BigDecimal", "\"x\"", "ARG "},
        {"java.math.BigDecimal", "\"\"", "ARG "},
        {"java.math.BigDecimal", "true", "ARG "},
        {"java.math.BigDecimal", "null", "4e"},
        {"java.math.BigInteger", "123456789012345678901234567890",
         "1e313233343536373839303132333435363738393031323334353637383930"},
        {"java.math.BigInteger", "-5", "022d35"},
        {"java.math.BigInteger", "5.0", "ARG "},
        {"java.math.BigInteger", "1e3", "ARG "},
        {NULL, "9223372036854775808", "1339323233333732303336383534373735383038"},
        {NULL, "12345678901234567890.10", "1731323334353637383930313233343536373839302e3130"},
        {NULL, "1.10", "5f0000044c"},
        {NULL, "0.1234567890123456789", "15302e31323334353637383930313233343536373839"},
        {NULL, "1e400",
         "05316534303"
         "0"},
        {NULL, "1e300", "447e37e43c8800759c"},
        {NULL, "1.7976931348623157e308", "447fefffffffffffff"},
        {NULL, "1e-320", "4400000000000007e8"},
        {NULL, "9007199254740993.0", "12393030373139393235343734303939332e30"},
        {NULL, "0.30000000000000004", "443fd3333333333334"},
    };

    check_rows(rows, ARRAY_LEN(rows));
    opts.decimals_as_string = true;
    ck_assert_str_eq(encode(NULL, "1.10"), "04312e3130");
    ck_assert_str_eq(encode(NULL, "11"), "9b");
    ck_assert_str_eq(encode("java.lang.Number", "1.5"), "5f000005dc");
}
END_TEST

START_TEST(texts)
{
    static const struct row rows[] = {
        {"java.lang.String", "\"x\"", "0178"},
        {"java.lang.String", "5", "0135"},
        {"java.lang.String", "1.50", "04312e3530"},
        {"java.lang.String", "true", "0474727565"},
        {"java.lang.String", "null", "4e"},
        {"java.lang.String", "[]", "ARG  an array is not a java.lang.String"},
        {"java.lang.String", "{}", "ARG "},
        {"java.lang.CharSequence", "\"\"", "00"},
        {"java.lang.String", "\"a\\nb\\\"\\/\\\\\\b\\f\\r\\t\"", "0a610a62222f5c080c0d09"},
        {"java.lang.String", "\"\\u0000\"", "0100"},
        {"java.lang.String", "\"\\ud83d\\ude00\"", "02eda0bdedb880"},
        {"java.lang.String", "\"\xf0\x9f\x98\x80\"", "02eda0bdedb880"},
        {"java.lang.String", "\"\\u4e2d\xe4\xb8\xad\"", "02e4b8ade4b8ad"},
        {"java.lang.String", "\"a\\ud83d.b\"", "JSON  a surrogate stands alone"},
        {"java.lang.String", "\"\\ude00\"", "JSON "},
        {"java.lang.String", "\"\xed\xa0\xbd\"", "JSON "},
        {"java.lang.String", "\"\xc0\x80\"", "JSON "},
        {"java.lang.Class", "\"a.B\"", "03612e42"},
        {"char", "\"A\"", "0141"},
        {"char", "\"\xe4\xb8\xad\"", "01e4b8ad"},
        {"java.lang.Character", "\"\\u0041\"", "0141"},
        {"char", "\"\"", "ARG "},
        {"char", "\"AB\"", "ARG "},
        {"char", "\"\xf0\x9f\x98\x80\"", "ARG "},
        {"char", "65", "ARG  65 is not a char"},
        {"demo.Color", "\"RED\"", "03524544"},
        {"demo.Color", "\"\xc3\x84_1\"", "03c3845f31"},
        {"demo.Color", "0", "ARG  0 is not a demo.Color"},
        {"demo.Person", "\"{\\\"name\\\":\\\"x\\\"}\"", "ARG "},
        {"demo.Person", "\"\"", "ARG "},
        {"demo.Person", "\"1st\"", "ARG "},
        {"demo.Person", "[{\"name\":\"x\"}]", "ARG  an array is not a demo.Person"},
    };

    check_rows(rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(bytes_and_arrays)
{
    static const struct row rows[] = {
        {"byte[]", "\"AQL/\"", "230102ff"},
        {"byte[]", "\"AQL\\/\"", "230102ff"}, /* as PHP writes it */
        {"byte[]", "\"AQL_\"", "230102ff"},
        {"byte[]", "\"\\u0041QL\\/\"", "230102ff"},
        {"byte[]", "\"AQI=\"", "220102"},
        {"byte[]", "\"AQI\"", "220102"},
        {"byte[]", "\"\"", "20"},
        {"byte[]", "[1,2,-1]", "230102ff"},
        {"byte[]", "[255]", "21ff"},
        {"byte[]", "[]", "20"},
        {"byte[]", "[256]", "ARG /0 256 is not a byte"},
        {"byte[]", "\"A?==\"", "ARG "},
        {"byte[]", "\"\\\\?==\"", "ARG "},
        {"byte[]", "[null]", "ARG /0 null is not a byte"},
        {"byte[]", "null", "4e"},
        {"char[]", "\"ab\"", "026162"},
        {"char[]", "[\"a\",\"b\"]", "7a01610162"},
        {"int[]", "[]", "78"},
        {"int[]", "[1,\"2\",3.0]", "7b919293"},
        {"int[]", "[1,null]", "ARG /1 null is not a int"},
        {"int[]", "[1,2.5]", "ARG /1 2.5 is not a int"},
        {"int[]", "5", "ARG  5 is not a int[]"},
        {"int[]", "[1,", "JSON "},
        {"java.lang.Integer[]", "[1,null]", "7a914e"},
        {"java.lang.Byte[]", "[1,null]", "7a914e"},
        {"java.lang.String[]", "[\"a\",null]", "7a01614e"},
        {"java.lang.String[]", "[1,2]", "7a01310132"},
        {"java.lang.Object[]", "[1,\"a\",[2]]", "7b9101617992"},
        {"int[][]", "[[1],[2,3]]", "7a79917a9293"},
        {"int[][]", "[[1],[2,null]]", "ARG /1/1 null is not a int"},
        {"java.util.Date[]", "[0,\"1970-01-01T00:01:00Z\"]", "7a4b000000004b00000001"},
        {"java.math.BigDecimal[]", "[1.10]", "7904312e3130"},
        {"demo.Color[]", "[\"RED\"]", "7903524544"},
        {"demo.Person[]", "[null,{\"name\":\"x\"}]", "7a4e48046e616d6501785a"},
        {"long[]", "[1,2,3,4,5,6,7,8]", "5898e1e2e3e4e5e6e7e8"},
        {"java.lang.String...", "[\"a\"]", "790161"},
    };

    check_rows(rows, ARRAY_LEN(rows));
}
END_TEST

START_TEST(collections_and_maps)
{
    static const struct row rows[] = {
        {"java.util.List", "[1,[],\"a\"]", "7b91780161"},
        {"java.util.Set", "[1]", "7991"},
        {"java.lang.Iterable", "[]", "78"},
        {"java.util.List", "{}", "ARG  an object is not a java.util.List"},
        {"java.util.List", "\"a\"", "ARG "},
        {"java.util.SortedSet", "[1]", "ARG "},
        {"java.util.Queue", "[1]", "ARG "},
        {"java.util.Optional", "1", "ARG "},
        {"java.util.Map", "{\"3\":{}}", "480133485a5a"},
        {"java.util.Map", "[]", "ARG "},
        {"java.util.LinkedHashMap", "{}", "4d176a6176612e7574696c2e4c696e6b6564486173684d61705a"},
        {"java.util.SortedMap", "{\"a\":1}",
         "4d116a6176612e7574696c2e547265654d6170016191"
         "5a"},
        {"java.util.concurrent.ConcurrentMap", "{\"a\":{\"b\":null}}",
         "4d30266a6176612e7574696c2e636f6e63757272656e742e436f6e63757272656e74486173684d6170"
         "01614801624e5a5a"},
        {"java.util.concurrent.ConcurrentHashMap", "{\"a\":1,\"b\":null}",
         "ARG /b a ConcurrentHashMap cannot hold null"},
        {"demo.Person", "{}", "485a"},
        {"demo.Person", "{\"a\":1,\"b\":[true,false,null]}", "4801619101627b54464e5a"},
        {"java.lang.Object", "[1,{\"x\":2.5}]", "7a914801785f000009c45a"},
        {NULL, "{\"a\":{\"b\":{}}}",
         "48016148016248"
         "5a5a5a"},
        {NULL, "\"2020-01-01\"", "0a323032302d30312d3031"},
    };

    check_rows(rows, ARRAY_LEN(rows));
    opts.preserve_order = true;
    ck_assert_str_eq(encode("java.util.Map", "{}"),
                     "4d176a6176612e7574696c2e4c696e6b6564486173684d61705a");
    ck_assert_str_eq(encode("demo.Person", "{}"), "485a");
}
END_TEST

START_TEST(class_keys)
{
    static const struct str allowed[] = {STR_INIT("demo.Dog")};
    const char *dog = "{\"class\":\"demo.Dog\",\"b\":1}";
    const char *url = "{\"class\":\"java.net.URL\"}";

    ck_assert_str_eq(encode("demo.Animal", dog),
                     "ARG /class a member named \"class\" with a text is not allowed");
    ck_assert(strncmp(encode(NULL, "[1,{\"a\":{\"cl\\u0061ss\":\"x\"}}]"), "ARG /1/a/class ", 15) ==
              0);
    ck_assert_str_eq(encode(NULL, "{\"class\":5}"), "4805636c617373955a");
    ck_assert_str_eq(encode(NULL, "{\"Class\":\"x\"}"), "4805436c61737301785a");

    opts.class_key = ARGS_CLASS_STRIP;
    ck_assert_str_eq(encode("demo.Animal", dog), "480162915a");
    ck_assert_str_eq(encode(NULL, "[{\"class\":\"x\",\"class\":\"y\"}]"),
                     "JSON /0/class the member \"class\" comes twice in one object");
    opts.duplicate_keys_last = true;
    ck_assert_str_eq(encode(NULL, "[{\"class\":\"x\",\"class\":\"y\"}]"), "79485a");
    opts.duplicate_keys_last = false;

    opts.class_key = ARGS_CLASS_PASS;
    opts.allow_classes = allowed;
    opts.n_allow_classes = ARRAY_LEN(allowed);
    ck_assert_str_eq(encode("demo.Animal", dog), "4805636c6173730864656d6f2e446f670162915a");
    ck_assert(strncmp(encode("demo.Animal", url), "ARG /class ", 11) == 0);
}
END_TEST

START_TEST(repeated_keys)
{
    struct buf b;

    ck_assert_str_eq(encode(NULL, "{\"a\":1,\"\\u0061\":2}"),
                     "JSON /a the member \"a\" comes twice in one object");
    ck_assert_str_eq(encode(NULL, "{\"\\u0061\":1,\"a\":2}"),
                     "JSON /a the member \"a\" comes twice in one object");
    ck_assert_str_eq(encode(NULL, "{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1}}"),
                     "480161480161480161915a5a0162480161915a5a");
    opts.duplicate_keys_last = true;
    ck_assert_str_eq(encode(NULL, "{\"a\":1,\"a\":2}"), "4801619101"
                                                        "61925a");
    opts.duplicate_keys_last = false;

    /* more keys than the first table holds: the repeated one is still found, others are not */
    buf_init(&b, OUT_MAX);
    buf_add_u8(&b, '{');
    for (int i = 0; i < 5000; i++)
        buf_printf(&b, "\"k%d\":%d,", i, i);
    buf_printf(&b, "\"z\":{\"k17\":1}");
    size_t good = b.len;

    buf_add_u8(&b, '}');
    ck_assert_int_eq(strncmp(encode_n(NULL, buf_str(&b)), "48026b3090026b31", 16), 0);
    buf_truncate(&b, good);
    buf_printf(&b, ",\"k17\":1}");
    ck_assert_str_eq(encode_n(NULL, buf_str(&b)),
                     "JSON /k17 the member \"k17\" comes twice in one object");
    buf_free(&b);
}
END_TEST

START_TEST(places_of_errors)
{
    ck_assert_str_eq(encode(NULL, "{\"a\":\n  [1, {\"b~/\\u00e9\": tru}]}"),
                     "JSON /a/1/b~0~1\xc3\xa9 this is no JSON value");
    ck_assert_uint_eq(error.line, 2);
    ck_assert_uint_eq(error.column, 21);
    ck_assert_str_eq(encode("int", "\"x\" "), "ARG  \"x\" is not a int");
    ck_assert_str_eq(encode("int", ""), "JSON  there is no JSON value");
    ck_assert_str_eq(encode("int", "1 2"), "JSON  something follows the JSON value");
    ck_assert_str_eq(encode(NULL, "{\"a\":1"), "JSON /a the text ends inside an object");

    /* quoted input is cut between characters, pointers too */
    struct buf json;

    buf_init(&json, OUT_MAX);
    buf_add_u8(&json, '"');
    for (int i = 0; i < 50; i++)
        buf_add_str(&json, STR("\xe4\xb8\xad"));
    buf_add_u8(&json, '"');
    ck_assert(strstr(encode_n("int", buf_str(&json)), "\xe4\xb8\xad…\" is not a int") != NULL);
    buf_truncate(&json, 0);
    buf_add_str(&json, STR("{\""));
    for (int i = 0; i < 50; i++)
        buf_add_str(&json, STR("\xe4\xb8\xad"));
    buf_add_str(&json, STR("\":+}"));
    encode_n(NULL, buf_str(&json));
    buf_free(&json);
    ck_assert_uint_eq(error.result, ARGS_BAD_JSON);
    ck_assert_uint_eq(strlen(error.pointer), 1 + 42 * 3);
    ck_assert_mem_eq(error.pointer + strlen(error.pointer) - 3, "\xe4\xb8\xad", 3);
}
END_TEST

/* Closes `n` of the brackets that were opened; the depth limit counts them. */
static const char *nested(size_t n)
{
    char *text = malloc(2 * n + 1);
    const char *got = NULL;

    ck_assert_ptr_nonnull(text);
    memset(text, '[', n);
    memset(text + n, ']', n);
    got = encode_n(NULL, (struct str){text, 2 * n});
    free(text);
    return got;
}

START_TEST(depth)
{
    opts.max_depth = 5;
    ck_assert_str_eq(nested(5), "7979797978");
    ck_assert_str_eq(nested(6), "JSON /0/0/0/0 nested too deep");
    ck_assert_str_eq(encode(NULL, "{\"a\":{\"b\":[[[[1]]]]}}"), "JSON /a/b/0/0 nested too deep");
    ck_assert_str_eq(encode("int[][]", "[[1]]"), "797991");
    opts.max_depth = 1;
    ck_assert_str_eq(encode("int[][]", "[[1]]"), "JSON  nested too deep");
    opts.max_depth = 100000; /* the reader knows better */
    ck_assert(strncmp(nested(256), "7979", 4) == 0);
    ck_assert(strncmp(nested(257), "JSON ", 5) == 0);
    ck_assert(strncmp(nested(100000), "JSON ", 5) == 0);
}
END_TEST

START_TEST(lists_of_any_length)
{
    static const size_t lengths[] = {0, 1, 7, 8, 47, 48, 2047, 2048, 262144};

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        size_t n = lengths[i];
        struct buf json;
        struct buf out;
        const struct arg arg = {.json = STR_NONE, .type = NULL};
        struct arg with = arg;

        buf_init(&json, OUT_MAX);
        buf_init(&out, OUT_MAX);
        buf_add_u8(&json, '[');
        for (size_t k = 0; k < n; k++)
            buf_add(&json, k == 0 ? "1" : ",1", k == 0 ? 1 : 2);
        buf_add_u8(&json, ']');
        with.json = buf_str(&json);
        ck_assert_int_eq(arg_encode(&with, &opts, &out, &error), ARGS_OK);
        if (n <= 7) {
            ck_assert_uint_eq(out.data[0], 0x78 + n);
            ck_assert_uint_eq(out.len, 1 + n);
        } else {
            size_t head = n <= 47 ? 2 : n <= 2047 ? 3 : n <= 65536 ? 4 : 6;

            ck_assert_uint_eq(out.data[0], 'X');
            ck_assert_uint_eq(out.len, head + n);
            if (head == 6)
                ck_assert_uint_eq(get_be32(out.data + 2), n);
        }
        ck_assert_uint_eq(out.data[out.len - 1], n == 0 ? 0x78 : 0x91);
        buf_free(&json);
        buf_free(&out);
    }
}
END_TEST

START_TEST(limit_of_the_output)
{
    const struct arg arg = {.json = STR("[\"0123456789\",\"0123456789\"]"), .type = NULL};

    for (size_t limit = 0; limit < 24; limit++) {
        struct buf out;

        buf_init(&out, limit);
        if (limit < 1 + 11 + 11)
            ck_assert_int_eq(arg_encode(&arg, &opts, &out, &error), ARGS_TOO_LARGE);
        ck_assert_uint_eq(out.len, 0);
        buf_free(&out);
    }
}
END_TEST

/* Input made to be slow costs no more than its length allows (docs/ROBUSTNESS.md C7). */
START_TEST(hostile_input_is_quick)
{
    static const char *const units[] = {"[", "{\"a\":", "9", "[1],", "\"\\u0061\","};
    struct timespec a;
    struct timespec b;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        struct buf json;

        buf_init(&json, OUT_MAX);
        if (i > 2)
            buf_add_u8(&json, '[');
        while (json.len < 900000)
            buf_add(&json, units[i], strlen(units[i]));
        (void)encode_n("double", buf_str(&json));
        (void)encode_n("int", buf_str(&json));
        (void)encode_n("java.math.BigDecimal", buf_str(&json));
        (void)encode_n(NULL, buf_str(&json));
        buf_free(&json);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    ck_assert_int_lt((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000, 2000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("codec_json_args");
    TCase *t = tcase_create("rows");
    SRunner *r = srunner_create(s);
    int failed = 0;

    hash_seed(hash_random_seed());
    tcase_add_checked_fixture(t, fresh_options, NULL);
    tcase_add_test(t, booleans);
    tcase_add_test(t, whole_numbers);
    tcase_add_test(t, broken_numbers);
    tcase_add_test(t, exact_digits);
    tcase_add_test(t, texts);
    tcase_add_test(t, bytes_and_arrays);
    tcase_add_test(t, collections_and_maps);
    tcase_add_test(t, class_keys);
    tcase_add_test(t, repeated_keys);
    tcase_add_test(t, places_of_errors);
    tcase_add_test(t, depth);
    tcase_add_test(t, lists_of_any_length);
    tcase_add_test(t, limit_of_the_output);
    tcase_add_test(t, hostile_input_is_quick);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
