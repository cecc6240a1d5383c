/*
 * THE table of what can happen to a call: HTTP status, stable code, may it be tried again (docs/PROTOCOL.md
 * section 17, docs/OPERATIONS.md section 2.4).  No other file writes a status number for an error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/reply.h"
#include "registry/registry.h"

enum outcome {
    OUTCOME_OK = 0,
    /* at the door and before a provider is touched */
    OUTCOME_BAD_REQUEST,
    OUTCOME_MISSING_ARGUMENT,
    OUTCOME_BAD_ARGUMENT,
    OUTCOME_ARGUMENT_COUNT,
    OUTCOME_UNKNOWN_TYPE,
    OUTCOME_AMBIGUOUS_METHOD,
    OUTCOME_UNKNOWN_PARAMETER,
    OUTCOME_NOT_ALLOWED,
    OUTCOME_ROUTE_NOT_FOUND,
    OUTCOME_NOT_FOUND,
    OUTCOME_METHOD_NOT_ALLOWED,
    OUTCOME_REQUEST_TIMEOUT,
    OUTCOME_LENGTH_REQUIRED,
    OUTCOME_REQUEST_TOO_LARGE,
    OUTCOME_UNSUPPORTED_MEDIA_TYPE,
    OUTCOME_EXPECTATION_FAILED,
    OUTCOME_TRANSFER_CODING,
    OUTCOME_HTTP_VERSION,
    /* provider answers */
    OUTCOME_VALIDATION_FAILED,
    OUTCOME_PROVIDER_EXCEPTION,
    OUTCOME_BUSINESS_ERROR,
    OUTCOME_METHOD_NOT_FOUND,
    OUTCOME_BAD_PROVIDER_RESPONSE,
    OUTCOME_RESPONSE_TOO_LARGE,
    OUTCOME_UNSUPPORTED_SERIALIZATION,
    OUTCOME_PROVIDER_REJECTED_REQUEST,
    OUTCOME_PROVIDER_NOT_FOUND,
    OUTCOME_PROVIDER_ERROR,
    OUTCOME_TOKEN_REJECTED,
    OUTCOME_PROVIDER_BUSY,
    OUTCOME_PROVIDER_TIMEOUT,
    OUTCOME_CONNECTION_LOST,
    OUTCOME_PROVIDER_UNREACHABLE,
    /* the gateway's own */
    OUTCOME_NO_PROVIDER,
    OUTCOME_NO_PROVIDER_AFTER_RULES,
    OUTCOME_GATEWAY_BUSY,
    OUTCOME_REFERENCE_LIMIT,
    OUTCOME_STARTING,
    OUTCOME_DRAINING,
    OUTCOME_INTERNAL,
    OUTCOMES, /* must stay last */
};

/* Names of retry.conditions and idempotent_conditions (docs/OPERATIONS.md section 2.6). */
enum retry_condition {
    RETRY_NEVER = 0,
    RETRY_CONNECT_FAILURE,
    RETRY_NOT_EXPORTED,
    RETRY_BUSY,
    RETRY_REJECTED,
    RETRY_CONNECTION_LOST,
    RETRY_TIMEOUT,
    RETRY_CONDITIONS, /* must stay last */
};

struct outcome_row {
    const char *code;  /* "NO_PROVIDER" */
    const char *title; /* reason phrase of the status */
    uint16_t status;
    enum retry_condition retry;
    bool retryable; /* for the client: it did not run, and the same request may succeed later */
    bool provider_failure; /* counts against the provider (outlier detection, error counters) */
    uint8_t retry_after_s; /* 0 = no header */
    const char *detail;    /* what a client reads when nothing better is known */
    const char *flag;      /* "UH", "UF", …: field `reason` of the access log; "" = none */
};

const struct outcome_row *outcome_row(enum outcome o);

/* What a decoded answer means.  `interface_method` and `types` are what was sent, to tell an unknown method
 * from an unknown type in the texts of status 70. */
enum outcome outcome_of_reply(const struct reply *r, enum reply_result result, struct str interface,
                              struct str method) __attribute__((nonnull(1)));
/* Why the registry gave no list. */
enum outcome outcome_of_refusal(enum registry_refusal r);
