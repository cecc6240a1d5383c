/*
 * A configuration from text and a request by hand, for the tests of routing and binding.
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include <check.h>

#include "gateway/problem.h"
#include "gateway/request.h"
#include "gateway/settings.h"

/* Fails the test with the first error of the configuration. */
static inline struct settings *kit_settings(const char *yaml)
{
    struct config_errors errs = {.file = "test.yaml"};
    struct settings *s = settings_parse("test.yaml", str_from(yaml), &errs);

    ck_assert_msg(s != NULL, "test.yaml:%u:%u: %s", errs.v[0].line, errs.v[0].column,
                  errs.v[0].text);
    return s;
}

struct ask {
    struct arena a;
    struct header headers[32];
    struct request r;
    struct problem p;
};

/* `lines`: "Name: value\n…"; Host is x unless given.  kit_done() gives the memory back. */
static inline void kit_ask(struct ask *q, const char *method, const char *target, const char *lines,
                           const char *body)
{
    struct str rest = str_from(lines);

    *q = (struct ask){.headers = {{STR("Host"), STR("x")}}};
    arena_init(&q->a);
    q->r.n_headers = str_starts(rest, STR("Host:")) ? 0 : 1;
    while (rest.n != 0) {
        struct str line = str_cut(rest, '\n', &rest);
        struct str value;
        struct str name = str_cut(line, ':', &value);

        ck_assert_uint_lt(q->r.n_headers, 32);
        q->headers[q->r.n_headers++] = (struct header){name, str_trim(value)};
    }
    q->r.headers = q->headers;
    q->r.method = str_from(method);
    q->r.path = str_cut(str_from(target), '?', &q->r.query);
    q->r.version = STR("HTTP/1.1");
    q->r.body = str_from(body);
    q->r.client_ip = STR("192.0.2.7");
    q->r.id = STR("01JHKZ6V3W8Q5T2M9C4R7YB0XD");
}

static inline void kit_done(struct ask *q)
{
    arena_free(&q->a);
}

static inline int kit_run(Suite *s)
{
    SRunner *r = srunner_create(s);
    int failed = 0;

    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
