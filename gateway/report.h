/*
 * What a worker knows, as JSON for the admin interface, and the adding up of several workers' answers.
 *
 * report_* run inside the worker (control_gather); report_merge_* in the control thread.
 */
#pragma once

#include <jansson.h>

#include "base/compiler.h"
#include "gateway/metrics.h"
#include "gateway/worker.h"

/* {KEY: {"in_flight":…,"calls":…,"errors":…,"providers":[{"address":…,"state":…, …}]}} */
void report_references(struct worker *w, json_t *into) NONNULL;
/* [{"address":…,"state":…,"local_port":…, …}] */
void report_connections(struct worker *w, json_t *into) NONNULL;
void report_metrics(struct worker *w, struct metrics *into) NONNULL;

/* Adds the numbers of `from` (as report_references made it) to `to`. */
void report_merge_references(json_t *to, const json_t *from) NONNULL;
