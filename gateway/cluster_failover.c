/*
 * One provider after the other, as far as the route's `retry` allows (call.c): the default.
 */
#include "gateway/cluster.h"

const struct cluster cluster_failover = {.name = "failover"};
