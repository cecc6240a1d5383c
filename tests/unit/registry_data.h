/*
 * What the unit tests of registry/ share: real registry nodes from tests/data/registry, and a main.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

/* Calls `f` for each node name of the file; returns their number. */
static inline int each_node(const char *file, void (*f)(struct str node))
{
    char path[128];
    static char line[32768];
    FILE *in = NULL;
    int n = 0;

    snprintf(path, sizeof(path), "tests/data/registry/%s", file);
    in = fopen(path, "re");
    ck_assert_msg(in != NULL, "%s: run this from the top of the tree", path);
    while (fgets(line, sizeof(line), in) != NULL) {
        struct str node = str_trim(str_from(line));

        if (node.n == 0 || node.p[0] == '#')
            continue;
        f(node);
        n++;
    }
    fclose(in);
    return n;
}

static inline bool buf_is(const struct buf *b, const char *expected)
{
    bool same = str_is(buf_str(b), expected);

    if (!same)
        fprintf(stderr, "got      " STR_FMT "\nexpected %s\n", STR_ARG(buf_str(b)), expected);
    return same;
}

static inline int run_tests(const char *name, const TTest *const *tests, size_t n)
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    SRunner *r = srunner_create(s);
    int failed = 0;

    for (size_t i = 0; i < n; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define TEST_MAIN(name, ...)                               \
    int main(void)                                         \
    {                                                      \
        const TTest *const tests[] = {__VA_ARGS__};        \
        return run_tests((name), tests, ARRAY_LEN(tests)); \
    }
