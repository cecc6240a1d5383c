/*
 * Fixed lists: services[].providers of the configuration.  Nothing is connected, watched or written; a list
 * changes only with the configuration, and its names are resolved again like all others (reference.c).
 */
#include "registry/kind.h"
#include "registry/reference.h"

static void *fixed_open(struct source *s, struct err *e)
{
    return s;
}

static void fixed_close(void *kind)
{
}

static void fixed_watch(void *kind, struct reference *ref)
{
    const struct list_report l = {.urls = ref->fixed_urls, .n = ref->n_fixed_urls, .exists = true};

    reference_on_list(ref, &l);
}

static void fixed_nothing(void *kind, struct reference *ref)
{
}

static bool fixed_tick(void *kind, uint64_t now_ms)
{
    return false;
}

static void fixed_node_name(const struct reference *ref, struct buf *out)
{
}

static void fixed_report(const void *kind, json_t *into)
{
    json_object_set_new(into, "state", json_string("fixed"));
}

static bool fixed_check(const char *address, struct err *e)
{
    return true;
}

const struct registry_kind registry_kind_static = {
    .scheme = "static",
    .fixed = true,
    .open = fixed_open,
    .close = fixed_close,
    .watch = fixed_watch,
    .unwatch = fixed_nothing,
    .refresh = fixed_watch,
    .publish = fixed_nothing,
    .unpublish = fixed_nothing,
    .node_name = fixed_node_name,
    .tick = fixed_tick,
    .report = fixed_report,
    .check = fixed_check,
};
