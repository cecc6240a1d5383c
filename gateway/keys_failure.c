/*
 * Rows about failing providers: retries, ejection, limits in flight.
 */
#include "gateway/keys_row.h"
#include "gateway/outcome.h"

static const char *const retry_choices[] = {"connect_failure", "not_exported", "busy", "rejected",
                                            NULL};
static const char *const idempotent_choices[] = {"connection_lost", "timeout", NULL};

#define P struct policy

const struct key keys_retry[] = {
    {.name = "attempts",
     ROW_U32(P, retry.attempts),
     .def = "1",
     .lo = 0,
     .hi = 5,
     .help = "Further attempts after the first."},
    {.name = "conditions",
     ROW_FLAGS(P, retry.conditions),
     .def = "all",
     .choices = retry_choices,
     .flag_base = RETRY_CONNECT_FAILURE,
     .help = "Conditions; all mean that the call certainly did not run."},
    {.name = "idempotent_conditions",
     ROW_FLAGS(P, retry.idempotent_conditions),
     .def = "connection_lost",
     .choices = idempotent_choices,
     .flag_base = RETRY_CONNECTION_LOST,
     .help = "Extra conditions, used only where idempotent: true."},
    {.name = "per_try_timeout",
     ROW_MS(P, retry.per_try_timeout_ms),
     .def = "0",
     .lo = 0,
     .hi = 60000,
     .help = "Limit of one try; 0 = the rest of the timeout."},
    {.name = "budget_percent",
     ROW_U32(P, retry.budget_percent),
     .def = "20",
     .lo = 0,
     .hi = 100,
     .help = "Retries in flight, as a share of calls in flight."},
    {.name = "budget_min",
     ROW_U32(P, retry.budget_min),
     .def = "3",
     .lo = 0,
     .hi = 1000,
     .help = "So many retries in flight are always allowed."},
    {.name = NULL},
};

const struct key keys_outlier[] = {
    {.name = "consecutive_failures",
     ROW_U32(P, outlier.failures),
     .def = "5",
     .lo = 0,
     .hi = 1000,
     .help = "Failures in a row before ejection, per worker; 0 = off."},
    {.name = "base_ejection_time",
     ROW_MS(P, outlier.base_ms),
     .def = "10s",
     .lo = 1000,
     .hi = 3600000,
     .help = "First ejection; grows linearly with each further one."},
    {.name = "max_ejection_time",
     ROW_MS(P, outlier.max_ms),
     .def = "300s",
     .lo = 1000,
     .hi = 86400000,
     .help = "Upper bound."},
    {.name = "max_ejection_percent",
     ROW_U32(P, outlier.max_percent),
     .def = "50",
     .lo = 0,
     .hi = 100,
     .help =
         "At most this share of the providers of a service; above it all that are connected are used again."},
    {.name = NULL},
};

const struct key keys_breakers[] = {
    {.name = "max_requests",
     ROW_U32(P, breakers.max_requests),
     .def = "1024",
     .lo = 1,
     .hi = 1000000,
     .help = "Calls in flight per service; above it 503 GATEWAY_BUSY."},
    {.name = "max_requests_per_provider",
     ROW_U32(P, breakers.max_requests_per_provider),
     .def = "512",
     .lo = 1,
     .hi = 1000000,
     .help = "Calls in flight per provider."},
    {.name = NULL},
};
