#include <stdlib.h>

#include <jansson.h>

#include "base/clock.h"
#include "registry/core.h"

static json_t *time_json(uint64_t at_wall_ms)
{
    char text[TIME_TEXT_LEN + 1];

    if (at_wall_ms == 0)
        return json_null();
    time_text(at_wall_ms, text);
    return json_string(text);
}

static const char *source_name(const struct reference *ref)
{
    if (ref->directory == NULL)
        return "none";
    switch (ref->directory->source) {
    case DIRECTORY_REGISTRY:
        return "registry";
    case DIRECTORY_STATIC:
        return "configuration";
    case DIRECTORY_SNAPSHOT:
        return "snapshot";
    }
    return "none";
}

static json_t *providers_json(const struct directory *d)
{
    json_t *o = json_object();
    json_t *ignored = json_object();
    json_int_t unlisted = 0;

    for (size_t i = 0; d != NULL && i < d->n; i++)
        unlisted += d->providers[i].unlisted ? 1 : 0;
    json_object_set_new(o, "usable", json_integer(d != NULL ? (json_int_t)d->n_usable : 0));
    json_object_set_new(o, "unlisted", json_integer(unlisted));
    for (enum unusable u = UNUSABLE_PROTOCOL; u < UNUSABLE_REASONS; u++)
        json_object_set_new(ignored, unusable_name(u),
                            json_integer(d != NULL ? (json_int_t)d->n_ignored[u] : 0));
    json_object_set_new(o, "ignored", ignored);
    return o;
}

static json_t *events_json(const struct reference *ref)
{
    json_t *list = json_array();
    unsigned n = ref->n_events < EVENTS_KEPT ? ref->n_events : EVENTS_KEPT;

    for (unsigned i = 0; i < n; i++) {
        const struct reference_event *e = &ref->events[(ref->n_events - n + i) % EVENTS_KEPT];
        json_t *o = json_object();

        json_object_set_new(o, "time", time_json(e->wall_ms));
        json_object_set_new(o, "text", json_string(e->text));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *reference_json(const struct reference *ref)
{
    json_t *o = json_object();

    json_object_set_new(o, "key", json_string(ref->key_text));
    json_object_set_new(o, "registry",
                        ref->source != NULL ? json_string(ref->source->conf.name) : json_null());
    json_object_set_new(o, "state", json_string(reference_state_name(ref->state)));
    json_object_set_new(o, "source", json_string(source_name(ref)));
    json_object_set_new(o, "pinned", json_boolean(ref->pinned));
    json_object_set_new(o, "providers", providers_json(ref->directory));
    json_object_set_new(o, "created", time_json(ref->created_wall_ms));
    json_object_set_new(o, "last_used", time_json(ref->last_used_wall_ms));
    json_object_set_new(o, "last_change", time_json(ref->last_change_wall_ms));
    json_object_set_new(o, "subscribes", json_integer(ref->subscribes));
    json_object_set_new(o, "consumer_node",
                        ref->consumer == CONSUMER_THERE && ref->consumer_node != NULL
                            ? json_string(ref->consumer_node)
                            : json_null());
    json_object_set_new(o, "events", events_json(ref));
    return o;
}

static void print(json_t *o, struct buf *out)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);

    if (text != NULL)
        buf_add_str(out, str_from(text));
    free(text);
    json_decref(o);
}

static json_int_t number(const struct counter *c)
{
    return (json_int_t)counter_get(c);
}

void report_references_json(const struct registry *r, struct buf *out)
{
    json_t *o = json_object();
    json_t *by_state = json_object();
    json_t *list = json_array();

    for (enum reference_state s = REFERENCE_WANTED; s < REFERENCE_STATES; s++)
        json_object_set_new(by_state, reference_state_name(s),
                            json_integer(number(&r->numbers.references[s])));
    for (const struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next)
        json_array_append_new(list, reference_json(ref));
    json_object_set_new(o, "count", json_integer((json_int_t)r->n_references));
    json_object_set_new(o, "limit", json_integer((json_int_t)r->opts.max_references));
    json_object_set_new(o, "by_state", by_state);
    json_object_set_new(o, "subscriptions", json_integer(number(&r->numbers.subscriptions)));
    json_object_set_new(o, "watches", json_integer(number(&r->numbers.watches)));
    json_object_set_new(o, "consumer_nodes", json_integer(number(&r->numbers.consumer_nodes)));
    json_object_set_new(o, "registry_writes_total",
                        json_integer(number(&r->numbers.creates) + number(&r->numbers.deletes)));
    json_object_set_new(o, "evicted_total", json_integer(number(&r->numbers.evictions)));
    json_object_set_new(o, "negative_answers", json_integer((json_int_t)r->n_negatives));
    json_object_set_new(o, "references", list);
    print(o, out);
}

void report_registries_json(const struct registry *r, struct buf *out)
{
    buf_add_u8(out, '[');
    for (size_t i = 0; i < r->n_sources; i++) {
        const struct source *s = &r->sources[i];

        buf_printf(out, "%s{\"name\":\"%s\",\"connected\":%s,\"for_s\":%llu", i != 0 ? "," : "",
                   s->conf.name, s->connected ? "true" : "false",
                   (unsigned long long)((clock_ms() - s->changed_ms) / 1000));
        s->kind->report(s->impl, out);
        buf_printf(
            out,
            ",\"watches\":%llu,\"writes_total\":%llu,\"reconnects\":%llu,\"sessions_expired\":%llu}",
            (unsigned long long)counter_get(&r->numbers.watches),
            (unsigned long long)(counter_get(&r->numbers.creates) +
                                 counter_get(&r->numbers.deletes)),
            (unsigned long long)counter_get(&r->numbers.reconnects),
            (unsigned long long)counter_get(&r->numbers.expired));
    }
    buf_add_u8(out, ']');
}
