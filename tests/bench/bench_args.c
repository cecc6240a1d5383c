/*
 * Time per body of JSON -> Hessian2: 200 bytes by declared types, the same by natural value, and a larger one.
 *
 *   bench_args [TIMES [PART-OF-A-NAME]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "codec/invoke.h"
#include "codec/json_read.h"

enum { BODY_MAX = 1 << 20, ARGS_MAX = 4 };

static const char small[] =
    "[{\"id\":12345,\"name\":\"Ada Lovelace\",\"email\":\"ada@example.com\",\"age\":36,\"active\":true,"
    "\"score\":99.5,\"address\":{\"street\":\"St James's Square\",\"zip\":10115,\"city\":\"London\"},"
    "\"tags\":[\"a\",\"b\",\"c\"],\"note\":null}]";

static const char typed[] =
    "[9007199254740993,\"2018-01-29T12:00:00Z\",12345678901234567890.10,[\"a\",\"b\",\"c\",\"d\"]]";

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* As the gateway does it: the elements of the body are the arguments. */
static bool encode(struct str body, const struct jtype *const *types, struct buf *out)
{
    static const struct args_opts opts = {.max_depth = 128};
    struct arg args[ARGS_MAX];
    struct args_error e;
    struct json_each each = {0};
    size_t n = 0;

    while (n < ARGS_MAX && json_array_next(&each, body, &args[n].json)) {
        args[n].type = types[n];
        n++;
    }
    buf_truncate(out, 0);
    return invoke_middle(STR("createUser"), args, n, &opts, out, &e) == ARGS_OK;
}

static const char *only; /* part of a name */

static void run(const char *name, struct str body, const char *const *type_names, unsigned times)
{
    const struct jtype *types[ARGS_MAX] = {0};
    struct arena a;
    struct buf out;
    uint64_t best = UINT64_MAX;

    if (only != NULL && strstr(name, only) == NULL)
        return;
    arena_init(&a);
    buf_init(&out, (size_t)4 * BODY_MAX);
    for (size_t i = 0; i < ARGS_MAX && type_names[i] != NULL; i++) {
        struct jtype *t = arena_alloc(&a, sizeof(*t));
        struct err e;

        if (!jtype_parse(str_from(type_names[i]), &a, t, &e))
            abort();
        types[i] = t;
    }
    for (unsigned round = 0; round < 5; round++) {
        uint64_t from = now_ns();

        for (unsigned i = 0; i < times; i++) {
            if (!encode(body, types, &out))
                abort();
        }
        from = now_ns() - from;
        best = from < best ? from : best;
    }
    printf("%-28s %8zu B in %8zu B out %10.1f ns\n", name, body.n, out.len,
           (double)best / (double)times);
    buf_free(&out);
    arena_free(&a);
}

int main(int argc, char **argv)
{
    static const char *const pojo[ARGS_MAX] = {"demo.User"};
    static const char *const natural[ARGS_MAX] = {NULL};
    static const char *const four[ARGS_MAX] = {"long", "java.util.Date", "java.math.BigDecimal",
                                               "java.lang.String[]"};
    unsigned times = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 200000;
    struct buf large;

    only = argc > 2 ? argv[2] : NULL;
    hash_seed(1);
    run("args: one POJO", str_from(small), pojo, times);
    run("args: the same without types", str_from(small), natural, times);
    run("args: four declared types", str_from(typed), four, times);
    buf_init(&large, BODY_MAX);
    buf_add_str(&large, STR("[["));
    for (int i = 0; i < 200; i++) {
        if (i != 0)
            buf_add_u8(&large, ',');
        buf_add(&large, small + 1, sizeof(small) - 3);
    }
    buf_add_str(&large, STR("]]"));
    run("args: a list of 200 POJOs", buf_str(&large), natural, times / 200 + 1);
    buf_free(&large);
    return EXIT_SUCCESS;
}
