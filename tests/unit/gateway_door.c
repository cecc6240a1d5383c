#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "gateway/door.h"

/* A request as the library would hand it on, from a head as a client sends it (well-formed lines only). */
struct head {
    struct header headers[16];
    struct request request;
    struct door_facts facts;
    struct door_verdict verdict;
    struct problem problem;
};

static enum door_result knock(struct head *h, const char *method, const char *target,
                              const char *version, const char *lines)
{
    struct str rest = str_from(lines);
    size_t size = strlen(method) + strlen(target) + strlen(version) + 4;

    *h = (struct head){.facts = {.max_body = 1000, .chunked_allowed = true}};
    h->request.method = str_from(method);
    h->request.version = str_from(version);
    h->request.headers = h->headers;
    while (rest.n != 0) {
        struct str line = str_cut(rest, '\n', &rest);
        struct str value;
        struct str name = str_cut(line, ':', &value);

        size += line.n + 2;
        h->headers[h->request.n_headers++] = (struct header){name, str_trim(value)};
    }
    h->facts.raw_target = str_from(target);
    h->facts.header_size = size + 2;
    return door_check(&h->request, &h->facts, &h->verdict, &h->problem);
}

START_TEST(good_requests_pass)
{
    struct head h;

    ck_assert_int_eq(knock(&h, "POST", "/a/b?c=d", "HTTP/1.1", "Host: x\nContent-Length: 5"),
                     DOOR_OK);
    ck_assert(str_is(h.request.path, "/a/b") && str_is(h.request.query, "c=d"));
    ck_assert(h.verdict.has_body && h.verdict.content_length == 5);
    ck_assert_int_eq(knock(&h, "POST", "/", "HTTP/1.1", "Host: x\nTransfer-Encoding: Chunked"),
                     DOOR_OK);
    ck_assert(h.verdict.chunked);
    ck_assert_int_eq(knock(&h, "GET", "/", "HTTP/1.0", ""), DOOR_OK);
    ck_assert_int_eq(knock(&h, "GET", "http://x:8080/p?q", "HTTP/1.1", "Host: x:8080"), DOOR_OK);
    ck_assert(str_is(h.request.path, "/p") && str_is(h.request.query, "q"));
    ck_assert_int_eq(knock(&h, "OPTIONS", "*", "HTTP/1.1", "Host: x"), DOOR_OPTIONS_STAR);
    ck_assert_int_eq(knock(&h, "GET", "/", "HTTP/1.1", "Host: x\nX-Empty: "), DOOR_OK);
    ck_assert_int_eq(knock(&h, "GET", "/", "HTTP/1.1", "Host: x\nX-Empty:"), DOOR_OK);
}
END_TEST

static const struct {
    const char *method, *target, *version, *lines;
    enum outcome want;
} refused[] = {
    {"POST", "/", "HTTP/1.1", "Host: x\nContent-Length: 5\nContent-Length: 5", OUTCOME_BAD_REQUEST},
    {"POST", "/", "HTTP/1.1", "Host: x\nContent-Length: 5\nTransfer-Encoding: chunked",
     OUTCOME_BAD_REQUEST},
    {"POST", "/", "HTTP/1.1", "Host: x\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked",
     OUTCOME_BAD_REQUEST},
    {"POST", "/", "HTTP/1.1", "Host: x\nTransfer-Encoding: gzip, chunked", OUTCOME_TRANSFER_CODING},
    {"POST", "/", "HTTP/1.0", "Host: x\nTransfer-Encoding: chunked", OUTCOME_BAD_REQUEST},
    {"POST", "/", "HTTP/1.1", "Host: x\nContent-Length: +5", OUTCOME_BAD_REQUEST},
    {"POST", "/", "HTTP/1.1", "Host: x\nContent-Length: 99999999999999999999", OUTCOME_BAD_REQUEST},
    {"POST", "/", "HTTP/1.1", "Host: x\nContent-Length: 1001", OUTCOME_REQUEST_TOO_LARGE},
    {"POST", "/", "HTTP/1.1", "Host: x", OUTCOME_LENGTH_REQUIRED},
    {"PUT", "/", "HTTP/1.1", "Host: x", OUTCOME_LENGTH_REQUIRED},
    {"GET", "/", "HTTP/1.1", "", OUTCOME_BAD_REQUEST},
    {"GET", "/", "HTTP/1.1", "Host: x\nHost: x", OUTCOME_BAD_REQUEST},
    {"GET", "/", "HTTP/1.1", "Host: a@b", OUTCOME_BAD_REQUEST},
    {"GET", "/", "HTTP/1.1", "Host: x\nContent-Length : 5", OUTCOME_BAD_REQUEST},
    {"GET", "/", "HTTP/1.1", "Host: x\nX Y: 1", OUTCOME_BAD_REQUEST},
    {"GET", "/", "HTTP/1.1",
     "Host: x\nX-A: a\x01"
     "b",
     OUTCOME_BAD_REQUEST},
    {"GET", "/", "HTTP/1.1", "Host: x\nExpect: 200-maybe", OUTCOME_EXPECTATION_FAILED},
    {"GET", "/", "HTTP/1.2", "Host: x", OUTCOME_HTTP_VERSION},
    {"G(T", "/", "HTTP/1.1", "Host: x", OUTCOME_BAD_REQUEST},
    {"GET", "/a%00b", "HTTP/1.1", "Host: x", OUTCOME_BAD_REQUEST},
    {"GET", "/a%zz", "HTTP/1.1", "Host: x", OUTCOME_BAD_REQUEST},
    {"GET", "/a%2", "HTTP/1.1", "Host: x", OUTCOME_BAD_REQUEST},
    {"GET", "/a b", "HTTP/1.1", "Host: x", OUTCOME_BAD_REQUEST},
    {"GET", "/a\\b", "HTTP/1.1", "Host: x", OUTCOME_BAD_REQUEST},
    {"GET", "/a#b", "HTTP/1.1", "Host: x", OUTCOME_BAD_REQUEST},
    {"GET", "foo", "HTTP/1.1", "Host: x", OUTCOME_BAD_REQUEST},
    {"GET", "http://other/p", "HTTP/1.1", "Host: x", OUTCOME_BAD_REQUEST},
    {"GET", "https://x/p", "HTTP/1.1", "Host: x", OUTCOME_BAD_REQUEST},
    {"POST", "*", "HTTP/1.1", "Host: x\nContent-Length: 0", OUTCOME_BAD_REQUEST},
};

START_TEST(bad_requests_are_refused)
{
    struct head h;

    ck_assert_int_eq(
        knock(&h, refused[_i].method, refused[_i].target, refused[_i].version, refused[_i].lines),
        DOOR_REFUSED);
    ck_assert_int_eq(h.problem.outcome, refused[_i].want);
    ck_assert(h.problem.detail[0] != '\0');
}
END_TEST

/* What the library swallowed (a folded line, a second header block) shows only as missing bytes. */
START_TEST(hidden_bytes_end_the_connection)
{
    struct head h;

    ck_assert_int_eq(knock(&h, "GET", "/", "HTTP/1.1", "Host: x"), DOOR_OK);
    h.facts.header_size += 1;
    ck_assert_int_eq(door_check(&h.request, &h.facts, &h.verdict, &h.problem), DOOR_OK_CLOSE);
    h.facts.header_size -= 2;
    ck_assert_int_eq(door_check(&h.request, &h.facts, &h.verdict, &h.problem), DOOR_OK_CLOSE);
}
END_TEST

START_TEST(chunked_may_be_switched_off)
{
    struct head h;

    ck_assert_int_eq(knock(&h, "POST", "/", "HTTP/1.1", "Host: x\nTransfer-Encoding: chunked"),
                     DOOR_OK);
    h.facts.chunked_allowed = false;
    ck_assert_int_eq(door_check(&h.request, &h.facts, &h.verdict, &h.problem), DOOR_REFUSED);
    ck_assert_int_eq(h.problem.outcome, OUTCOME_LENGTH_REQUIRED);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_door");
    TCase *t = tcase_create("door");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_test(t, good_requests_pass);
    tcase_add_loop_test(t, bad_requests_are_refused, 0,
                        (int)(sizeof(refused) / sizeof(refused[0])));
    tcase_add_test(t, hidden_bytes_end_the_connection);
    tcase_add_test(t, chunked_may_be_switched_off);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
