#include "gateway/outcome.h"

#include "base/fatal.h"

static const struct outcome_row rows[OUTCOMES] =
    {
        [OUTCOME_OK] =
            {
                .code = "OK",
                .title = "OK",
                .status = 200,
                .detail = "",
                .flag = "",
            },
        [OUTCOME_BAD_REQUEST] =
            {
                .code = "BAD_REQUEST",
                .title = "Bad Request",
                .status = 400,
                .detail = "the request is malformed",
                .flag = "",
            },
        [OUTCOME_MISSING_ARGUMENT] =
            {
                .code = "MISSING_ARGUMENT",
                .title = "Bad Request",
                .status = 400,
                .detail = "an argument is missing",
                .flag = "",
            },
        [OUTCOME_BAD_ARGUMENT] =
            {
                .code = "BAD_ARGUMENT",
                .title = "Bad Request",
                .status = 400,
                .detail = "the provider cannot convert an argument to its parameter type",
                .flag = "",
            },
        [OUTCOME_ARGUMENT_COUNT] =
            {
                .code = "ARGUMENT_COUNT",
                .title = "Bad Request",
                .status = 400,
                .detail = "the number of arguments does not fit the method",
                .flag = "",
            },
        [OUTCOME_UNKNOWN_TYPE] =
            {
                .code = "UNKNOWN_TYPE",
                .title = "Bad Request",
                .status = 400,
                .detail = "the provider does not know a parameter type",
                .flag = "",
            },
        [OUTCOME_AMBIGUOUS_METHOD] =
            {
                .code = "AMBIGUOUS_METHOD",
                .title = "Bad Request",
                .status = 400,
                .detail = "the method is overloaded; name the parameter types",
                .flag = "",
            },
        [OUTCOME_UNKNOWN_PARAMETER] =
            {
                .code = "UNKNOWN_PARAMETER",
                .title = "Bad Request",
                .status = 400,
                .detail = "the request holds a parameter that nothing uses",
                .flag = "",
            },
        [OUTCOME_NOT_ALLOWED] =
            {
                .code = "NOT_ALLOWED",
                .title = "Forbidden",
                .status = 403,
                .detail = "this call is not allowed here",
                .flag = "",
            },
        [OUTCOME_ROUTE_NOT_FOUND] =
            {
                .code = "ROUTE_NOT_FOUND",
                .title = "Not Found",
                .status = 404,
                .detail = "no route",
                .flag = "NR",
            },
        [OUTCOME_NOT_FOUND] =
            {
                .code = "NOT_FOUND",
                .title = "Not Found",
                .status = 404,
                .detail = "there is no such thing",
                .flag = "",
            },
        [OUTCOME_METHOD_NOT_ALLOWED] =
            {
                .code = "METHOD_NOT_ALLOWED",
                .title = "Method Not Allowed",
                .status = 405,
                .detail = "this path takes other methods",
                .flag = "",
            },
        [OUTCOME_REQUEST_TIMEOUT] =
            {
                .code = "REQUEST_TIMEOUT",
                .title = "Request Timeout",
                .status = 408,
                .retryable = true,
                .detail = "the request took too long to arrive",
                .flag = "",
            },
        [OUTCOME_LENGTH_REQUIRED] =
            {
                .code = "LENGTH_REQUIRED",
                .title = "Length Required",
                .status = 411,
                .detail = "a Content-Length is required",
                .flag = "",
            },
        [OUTCOME_REQUEST_TOO_LARGE] =
            {
                .code = "REQUEST_TOO_LARGE",
                .title = "Content Too Large",
                .status = 413,
                .detail = "the request is too large",
                .flag = "",
            },
        [OUTCOME_UNSUPPORTED_MEDIA_TYPE] =
            {
                .code = "UNSUPPORTED_MEDIA_TYPE",
                .title = "Unsupported Media Type",
                .status = 415,
                .detail = "the body must be JSON in UTF-8",
                .flag = "",
            },
        [OUTCOME_EXPECTATION_FAILED] =
            {
                .code = "EXPECTATION_FAILED",
                .title = "Expectation Failed",
                .status = 417,
                .detail = "the expectation cannot be met",
                .flag = "",
            },
        [OUTCOME_TRANSFER_CODING] =
            {
                .code = "TRANSFER_CODING",
                .title = "Not Implemented",
                .status = 501,
                .detail = "the transfer coding is not known",
                .flag = "",
            },
        [OUTCOME_HTTP_VERSION] =
            {
                .code = "HTTP_VERSION",
                .title = "HTTP Version Not Supported",
                .status = 505,
                .detail = "the HTTP version is not supported",
                .flag = "",
            },
        [OUTCOME_VALIDATION_FAILED] =
            {
                .code = "VALIDATION_FAILED",
                .title = "Bad Request",
                .status = 400,
                .detail = "the provider's validation refused the data",
                .flag = "",
            },
        [OUTCOME_PROVIDER_EXCEPTION] =
            {
                .code = "PROVIDER_EXCEPTION",
                .title = "Internal Server Error",
                .status = 500,
                .detail = "the method threw an exception",
                .flag = "",
            },
        [OUTCOME_BUSINESS_ERROR] =
            {
                .code = "BUSINESS_ERROR",
                .title = "Unprocessable Content",
                .status = 422,
                .detail = "the result says failure",
                .flag = "",
            },
        [OUTCOME_METHOD_NOT_FOUND] =
            {
                .code = "METHOD_NOT_FOUND",
                .title = "Not Found",
                .status = 404,
                .detail = "the service has no such method with these parameter types",
                .flag = "",
            },
        [OUTCOME_BAD_PROVIDER_RESPONSE] =
            {
                .code = "BAD_PROVIDER_RESPONSE",
                .title = "Bad Gateway",
                .status = 502,
                .provider_failure = true,
                .detail = "the provider's answer cannot be read",
                .flag = "",
            },
        [OUTCOME_RESPONSE_TOO_LARGE] =
            {
                .code = "RESPONSE_TOO_LARGE",
                .title = "Bad Gateway",
                .status = 502,
                .detail = "the provider's answer is too large",
                .flag = "",
            },
        [OUTCOME_UNSUPPORTED_SERIALIZATION] =
            {
                .code = "UNSUPPORTED_SERIALIZATION",
                .title = "Bad Gateway",
                .status = 502,
                .provider_failure = true,
                .detail = "the provider answers in a serialization that is not spoken here",
                .flag = "",
            },
        [OUTCOME_PROVIDER_REJECTED_REQUEST] =
            {
                .code = "PROVIDER_REJECTED_REQUEST",
                .title = "Bad Gateway",
                .status = 502,
                .retry = RETRY_REJECTED,
                .retryable = true,
                .provider_failure = true,
                .detail = "the provider could not read the request",
                .flag = "",
            },
        [OUTCOME_PROVIDER_NOT_FOUND] =
            {
                .code = "PROVIDER_NOT_FOUND",
                .title = "Service Unavailable",
                .status = 503,
                .retry = RETRY_NOT_EXPORTED,
                .retryable = true,
                .provider_failure = true,
                .retry_after_s = 1,
                .detail = "the provider does not export the service",
                .flag = "",
            },
        [OUTCOME_PROVIDER_ERROR] =
            {
                .code = "PROVIDER_ERROR",
                .title = "Bad Gateway",
                .status = 502,
                .provider_failure = true,
                .detail = "the provider failed",
                .flag = "",
            },
        [OUTCOME_TOKEN_REJECTED] =
            {
                .code = "TOKEN_REJECTED",
                .title = "Bad Gateway",
                .status = 502,
                .retryable = true,
                .provider_failure = true,
                .detail = "the provider rejected the gateway's token",
                .flag = "",
            },
        [OUTCOME_PROVIDER_BUSY] =
            {
                .code = "PROVIDER_BUSY",
                .title = "Service Unavailable",
                .status = 503,
                .retry = RETRY_BUSY,
                .retryable = true,
                .provider_failure = true,
                .retry_after_s = 1,
                .detail = "the provider is busy",
                .flag = "UO",
            },
        [OUTCOME_PROVIDER_TIMEOUT] =
            {
                .code = "PROVIDER_TIMEOUT",
                .title = "Gateway Timeout",
                .status = 504,
                .retry = RETRY_TIMEOUT,
                .provider_failure = true,
                .detail = "no answer from the provider in time",
                .flag = "UT",
            },
        [OUTCOME_CONNECTION_LOST] =
            {
                .code = "CONNECTION_LOST",
                .title = "Bad Gateway",
                .status = 502,
                .retry = RETRY_CONNECTION_LOST,
                .provider_failure = true,
                .detail = "the connection to the provider was lost before it answered",
                .flag = "UC",
            },
        [OUTCOME_PROVIDER_UNREACHABLE] =
            {
                .code = "PROVIDER_UNREACHABLE",
                .title = "Service Unavailable",
                .status = 503,
                .retry = RETRY_CONNECT_FAILURE,
                .retryable = true,
                .provider_failure = true,
                .retry_after_s = 1,
                .detail = "no provider can be reached",
                .flag = "UF",
            },
        [OUTCOME_NO_PROVIDER] =
            {
                .code = "NO_PROVIDER",
                .title = "Service Unavailable",
                .status = 503,
                .retryable = true,
                .retry_after_s = 1,
                .detail = "no provider",
                .flag = "UH",
            },
        [OUTCOME_NO_PROVIDER_AFTER_RULES] =
            {
                .code = "NO_PROVIDER_AFTER_RULES",
                .title = "Service Unavailable",
                .status = 503,
                .retryable = true,
                .retry_after_s = 1,
                .detail = "rules leave no provider",
                .flag = "UH",
            },
        [OUTCOME_GATEWAY_BUSY] =
            {
                .code = "GATEWAY_BUSY",
                .title = "Service Unavailable",
                .status = 503,
                .retryable = true,
                .retry_after_s = 1,
                .detail = "too many calls in flight",
                .flag = "UO",
            },
        [OUTCOME_REFERENCE_LIMIT] =
            {
                .code = "REFERENCE_LIMIT",
                .title = "Service Unavailable",
                .status = 503,
                .retryable = true,
                .retry_after_s = 1,
                .detail = "too many different services are in use",
                .flag = "UO",
            },
        [OUTCOME_STARTING] =
            {
                .code = "STARTING",
                .title = "Service Unavailable",
                .status = 503,
                .retryable = true,
                .retry_after_s = 1,
                .detail = "the gateway has no list of providers yet",
                .flag = "SI",
            },
        [OUTCOME_DRAINING] =
            {
                .code = "DRAINING",
                .title = "Service Unavailable",
                .status = 503,
                .retryable = true,
                .detail = "the gateway is stopping",
                .flag = "SI",
            },
        [OUTCOME_INTERNAL] =
            {
                .code = "INTERNAL",
                .title = "Internal Server Error",
                .status = 500,
                .detail = "the gateway failed",
                .flag = "",
            },
};

const struct outcome_row *outcome_row(enum outcome o)
{
    ASSERT(o < OUTCOMES);

    return &rows[o];
}

/* Status bytes of an answer (docs/PROTOCOL.md section 3). */
enum {
    STATUS_OK = 20,
    STATUS_RESPONSE_TOO_LARGE = 25,
    STATUS_BAD_REQUEST = 40,
    STATUS_BAD_RESPONSE = 50,
    STATUS_SERVICE_NOT_FOUND = 60,
    STATUS_SERVICE_ERROR = 70,
    STATUS_SERVER_ERROR = 80,
    STATUS_THREADPOOL_EXHAUSTED = 100,
};

/* Texts of status 70, the same over all four Dubbo lines (docs/PROTOCOL.md section 11); first match wins.
 * "args.length" stands before the conversion marks because its stack trace may hold them too. */
static const struct {
    struct str mark;
    enum outcome outcome;
} texts[] = {
    {STR_INIT("Not found exported service"), OUTCOME_PROVIDER_NOT_FOUND},
    {STR_INIT("No such method"), OUTCOME_METHOD_NOT_FOUND},
    {STR_INIT("Not unique method"), OUTCOME_AMBIGUOUS_METHOD},
    {STR_INIT("args.length != types.length"), OUTCOME_ARGUMENT_COUNT},
    {STR_INIT("Invalid token! Forbid invoke"), OUTCOME_TOKEN_REJECTED},
    {STR_INIT("The service using threads greater than"), OUTCOME_PROVIDER_BUSY},
    {STR_INIT("exceed max service tps"), OUTCOME_PROVIDER_BUSY},
    {STR_INIT("PojoUtils.realize"), OUTCOME_BAD_ARGUMENT},
    {STR_INIT("safety barrier"), OUTCOME_BAD_ARGUMENT},
    {STR_INIT("Serialization Security"), OUTCOME_BAD_ARGUMENT},
};

static bool is_type_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '.' || c == '[' || c == ';' || c == ']';
}

static bool is_type_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is_type_char(s.p[i]))
            return false;
    }
    return s.n != 0;
}

/* 2.6 and 2.7 answer an unknown method with its own name and an unknown type with the type's, as the
 * whole message of an RpcException. */
static enum outcome outcome_of_bare_name(struct str text, struct str interface, struct str method)
{
    struct str rest;
    struct str line = str_trim(str_cut(text, '\n', &rest));
    struct str mark = STR("rpc.RpcException: ");
    size_t at = 0;

    while (at + mark.n <= line.n && !str_starts(str_sub(line, at, line.n), mark))
        at++;
    if (at + mark.n > line.n)
        return OUTCOME_PROVIDER_ERROR;
    line = str_sub(line, at + mark.n, line.n);
    if (str_starts(line, interface) && line.n > interface.n + 1 + method.n &&
        line.p[interface.n] == '.' && str_starts(str_sub(line, interface.n + 1, line.n), method) &&
        line.p[interface.n + 1 + method.n] == '(')
        return OUTCOME_METHOD_NOT_FOUND;
    return is_type_name(line) ? OUTCOME_UNKNOWN_TYPE : OUTCOME_PROVIDER_ERROR;
}

static enum outcome outcome_of_service_error(struct str text, struct str interface,
                                             struct str method)
{
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (str_contains(text, texts[i].mark))
            return texts[i].outcome;
    }
    return outcome_of_bare_name(text, interface, method);
}

static enum outcome outcome_of_status(const struct reply *r, struct str interface,
                                      struct str method)
{
    switch (r->status) {
    case STATUS_RESPONSE_TOO_LARGE:
        return OUTCOME_RESPONSE_TOO_LARGE;
    case STATUS_BAD_REQUEST:
        return OUTCOME_PROVIDER_REJECTED_REQUEST;
    case STATUS_BAD_RESPONSE:
        return str_contains(r->text, STR("Data length too large")) ? OUTCOME_RESPONSE_TOO_LARGE
                                                                   : OUTCOME_BAD_PROVIDER_RESPONSE;
    case STATUS_SERVICE_NOT_FOUND:
        return OUTCOME_PROVIDER_NOT_FOUND;
    case STATUS_SERVICE_ERROR:
        return outcome_of_service_error(r->text, interface, method);
    case STATUS_SERVER_ERROR:
        return OUTCOME_PROVIDER_ERROR;
    case STATUS_THREADPOOL_EXHAUSTED:
        return OUTCOME_PROVIDER_BUSY;
    default: /* 30, 31, 35, 90 and what nobody has defined */
        return OUTCOME_BAD_PROVIDER_RESPONSE;
    }
}

static bool is_validation(struct str class)
{
    return str_starts(class, STR("javax.validation.")) ||
           str_starts(class, STR("jakarta.validation."));
}

enum outcome outcome_of_reply(const struct reply *r, enum reply_result result, struct str interface,
                              struct str method)
{
    switch (result) {
    case REPLY_MALFORMED:
        return OUTCOME_BAD_PROVIDER_RESPONSE;
    case REPLY_TOO_LARGE:
        return OUTCOME_RESPONSE_TOO_LARGE;
    case REPLY_UNSUPPORTED:
        return OUTCOME_UNSUPPORTED_SERIALIZATION;
    case REPLY_OK:
        break;
    }
    switch (r->kind) {
    case REPLY_VALUE:
    case REPLY_NULL:
        return OUTCOME_OK;
    case REPLY_EXCEPTION:
        return is_validation(r->exception_class) ? OUTCOME_VALIDATION_FAILED
                                                 : OUTCOME_PROVIDER_EXCEPTION;
    case REPLY_STATUS:
        return outcome_of_status(r, interface, method);
    }
    return OUTCOME_INTERNAL;
}

enum outcome outcome_of_refusal(enum registry_refusal r)
{
    switch (r) {
    case REFUSAL_LIMIT:
        return OUTCOME_REFERENCE_LIMIT;
    case REFUSAL_STARTING:
        return OUTCOME_STARTING;
    case REFUSAL_NONE:
    case REFUSAL_UNKNOWN:
        return OUTCOME_NO_PROVIDER;
    }
    return OUTCOME_NO_PROVIDER;
}
