#include <stdlib.h>

#include <check.h>

#include "gateway/outcome.h"

static const struct {
    uint8_t status;
    const char *text;
    enum outcome want;
} cases[] = {
    {70,
     "org.apache.dubbo.remoting.RemotingException: Not found exported service: g/a.B:1.0:20880 in [x]",
     OUTCOME_PROVIDER_NOT_FOUND},
    {70, "com.alibaba.dubbo.rpc.RpcException: a.B.get(java.lang.Long,[I)\n\tat x",
     OUTCOME_METHOD_NOT_FOUND},
    {70, "org.apache.dubbo.rpc.RpcException: No such method get in class interface a.B",
     OUTCOME_METHOD_NOT_FOUND},
    {70, "org.apache.dubbo.rpc.RpcException: demo.NoSuchClass\n\tat y", OUTCOME_UNKNOWN_TYPE},
    {70, "org.apache.dubbo.rpc.RpcException: something else went wrong", OUTCOME_PROVIDER_ERROR},
    {70, "java.lang.IllegalStateException: Not unique method for method name(over) in class(a.B)",
     OUTCOME_AMBIGUOUS_METHOD},
    {70, "java.lang.IllegalArgumentException: args.length != types.length", OUTCOME_ARGUMENT_COUNT},
    {70, "java.lang.NumberFormatException: For input string: \"zz\"\n\tat c.PojoUtils.realize(",
     OUTCOME_BAD_ARGUMENT},
    {70, "x: [Serialization Security] Serialized class a.B is not in allow list",
     OUTCOME_BAD_ARGUMENT},
    {70, "com.alibaba.dubbo.rpc.RpcException: Invalid token! Forbid invoke remote service",
     OUTCOME_TOKEN_REJECTED},
    {70,
     "P: cause: The service using threads greater than <dubbo:service executes=\"1\" /> limited.",
     OUTCOME_PROVIDER_BUSY},
    {70, "because exceed max service tps.", OUTCOME_PROVIDER_BUSY},
    {70, "", OUTCOME_PROVIDER_ERROR},
    {25, "Data length too large", OUTCOME_RESPONSE_TOO_LARGE},
    {30, "", OUTCOME_BAD_PROVIDER_RESPONSE},
    {31, "", OUTCOME_BAD_PROVIDER_RESPONSE},
    {35, "", OUTCOME_BAD_PROVIDER_RESPONSE},
    {40, "Fail to decode request due to: RpcInvocation", OUTCOME_PROVIDER_REJECTED_REQUEST},
    {50, "Data length too large: 9, max payload: 8", OUTCOME_RESPONSE_TOO_LARGE},
    {50, "Failed to send response", OUTCOME_BAD_PROVIDER_RESPONSE},
    {60, "", OUTCOME_PROVIDER_NOT_FOUND},
    {80, "", OUTCOME_PROVIDER_ERROR},
    {90, "", OUTCOME_BAD_PROVIDER_RESPONSE},
    {100, "thread pool is exhausted", OUTCOME_PROVIDER_BUSY},
    {77, "", OUTCOME_BAD_PROVIDER_RESPONSE},
};

START_TEST(statuses_and_texts)
{
    const struct reply r = {
        .kind = REPLY_STATUS, .status = cases[_i].status, .text = str_from(cases[_i].text)};

    ck_assert_int_eq(outcome_of_reply(&r, REPLY_OK, STR("a.B"), STR("get")), cases[_i].want);
}
END_TEST

START_TEST(values_and_exceptions)
{
    struct reply r = {.kind = REPLY_VALUE, .status = 20};

    ck_assert_int_eq(outcome_of_reply(&r, REPLY_OK, STR("a.B"), STR("m")), OUTCOME_OK);
    ck_assert_int_eq(outcome_of_reply(&r, REPLY_MALFORMED, STR("a.B"), STR("m")),
                     OUTCOME_BAD_PROVIDER_RESPONSE);
    ck_assert_int_eq(outcome_of_reply(&r, REPLY_UNSUPPORTED, STR("a.B"), STR("m")),
                     OUTCOME_UNSUPPORTED_SERIALIZATION);
    ck_assert_int_eq(outcome_of_reply(&r, REPLY_TOO_LARGE, STR("a.B"), STR("m")),
                     OUTCOME_RESPONSE_TOO_LARGE);
    r.kind = REPLY_EXCEPTION;
    r.exception_class = STR("javax.validation.ConstraintViolationException");
    ck_assert_int_eq(outcome_of_reply(&r, REPLY_OK, STR("a.B"), STR("m")),
                     OUTCOME_VALIDATION_FAILED);
    r.exception_class = STR("demo.BizException");
    ck_assert_int_eq(outcome_of_reply(&r, REPLY_OK, STR("a.B"), STR("m")),
                     OUTCOME_PROVIDER_EXCEPTION);
}
END_TEST

/* A row that was forgotten has no code. */
START_TEST(every_outcome_has_a_row)
{
    for (enum outcome o = OUTCOME_OK; o < OUTCOMES; o++) {
        const struct outcome_row *r = outcome_row(o);

        ck_assert_ptr_nonnull(r->code);
        ck_assert_uint_ge(r->status, 200);
        ck_assert(o == OUTCOME_OK || r->status >= 400);
        ck_assert(r->retry == RETRY_NEVER || r->provider_failure);
        /* a client mistake stays one; after an unknown outcome nobody may promise anything */
        ck_assert(!r->retryable || r->status == 408 || r->status >= 500);
        ck_assert(r->retry == RETRY_NEVER || r->retry == RETRY_CONNECTION_LOST ||
                  r->retry == RETRY_TIMEOUT || r->retryable);
        ck_assert_ptr_nonnull(r->flag);
        ck_assert_ptr_nonnull(r->detail);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_outcome");
    TCase *t = tcase_create("table");
    SRunner *r = srunner_create(s);
    int failed = 0;

    tcase_add_loop_test(t, statuses_and_texts, 0, (int)(sizeof(cases) / sizeof(cases[0])));
    tcase_add_test(t, values_and_exceptions);
    tcase_add_test(t, every_outcome_has_a_row);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
