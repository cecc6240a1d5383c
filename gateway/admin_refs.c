/*
 * /references, /providers, /connections, /registries: what the registry thread and the workers know,
 * joined.  The registry answers first (its list is the truth), then every worker adds its numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "gateway/admin.h"
#include "gateway/report.h"

static void answer_object(struct admin_request *q, const json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15));

    if (text == NULL) {
        admin_answer_json(q, MHD_HTTP_INTERNAL_SERVER_ERROR, STR("{\"error\":\"cannot print\"}"));
        return;
    }
    admin_answer_json(q, MHD_HTTP_OK, str_from(text));
    free(text);
}

static void *make_object(struct control *c)
{
    return json_object();
}

static void *make_array(struct control *c)
{
    return json_array();
}

static void release_json(void *part)
{
    json_decref(part);
}

static void collect_references(struct worker *w, void *part)
{
    report_references(w, part);
}

static void collect_connections(struct worker *w, void *part)
{
    report_connections(w, part);
}

static json_t *merged(void **parts, unsigned n)
{
    json_t *all = json_object();

    for (unsigned i = 0; i < n; i++) {
        if (parts[i] == NULL)
            continue;
        json_t *copy = json_deep_copy(parts[i]);

        report_merge_references(all, copy);
        json_decref(copy);
    }
    return all;
}

/* ---------------------------------------------------------------- references */

struct pending {
    struct control *control;
    uint64_t id;
    json_t *registry; /* the registry's answer */
};

static const char *const worker_numbers[] = {"in_flight", "calls", "errors"};

static bool key_is(const json_t *reference, struct str key)
{
    const char *text = json_string_value(json_object_get(reference, "key"));

    return text != NULL && str_is(key, text);
}

static void add_worker_numbers(json_t *reference, const json_t *workers, bool with_providers)
{
    const char *key = json_string_value(json_object_get(reference, "key"));
    json_t *mine = key != NULL ? json_object_get(workers, key) : NULL;

    for (size_t i = 0; i < ARRAY_LEN(worker_numbers); i++) {
        json_t *v = json_object_get(mine, worker_numbers[i]);

        json_object_set_new(reference, worker_numbers[i],
                            json_integer(v != NULL ? json_integer_value(v) : 0));
    }
    if (with_providers && mine != NULL)
        json_object_set(reference, "endpoints", json_object_get(mine, "providers"));
}

/* Nothing stands for this key; what became of the last call of it, if that is remembered. */
static void answer_unknown(struct admin_request *q, const json_t *registry)
{
    json_t *o = json_pack("{s:s}", "error", "no such reference");
    size_t i = 0;
    json_t *r = NULL;
    char *text = NULL;

    json_array_foreach(json_object_get(registry, "refused"), i, r)
    {
        if (key_is(r, q->rest))
            json_object_set(o, "refused", r);
    }
    text = json_dumps(o, JSON_COMPACT);
    admin_answer_json(q, MHD_HTTP_NOT_FOUND, str_from(text != NULL ? text : "{}"));
    free(text);
    json_decref(o);
}

static void on_references(struct control *c, void **parts, unsigned n, void *ctx)
{
    struct pending *p = ctx;
    struct admin_request *q = admin_find(c->admin, p->id);
    json_t *workers = merged(parts, n);
    json_t *one = NULL;
    size_t i = 0;
    json_t *r = NULL;

    json_array_foreach(json_object_get(p->registry, "references"), i, r)
    {
        bool asked = q != NULL && q->rest.n != 0 && key_is(r, q->rest);

        add_worker_numbers(r, workers, asked);
        if (asked)
            one = r;
    }
    if (q != NULL && q->rest.n != 0 && one == NULL)
        answer_unknown(q, p->registry);
    else if (q != NULL)
        answer_object(q, one != NULL ? one : p->registry);
    json_decref(workers);
    json_decref(p->registry);
    free(p);
}

static void on_registry_references(struct admin_request *q, struct str report)
{
    const struct gather_spec spec = {
        .make = make_object,
        .run = collect_references,
        .release = release_json,
        .done = on_references,
        .ctx = xcalloc(1, sizeof(struct pending)),
    };
    struct pending *p = spec.ctx;

    p->control = q->admin->control;
    p->id = q->id;
    p->registry = json_loadb(report.p, report.n, 0, NULL);
    if (p->registry == NULL) {
        free(p);
        admin_answer_json(q, MHD_HTTP_INTERNAL_SERVER_ERROR,
                          STR("{\"error\":\"the registry's report is no JSON\"}"));
        return;
    }
    control_gather(q->admin->control, &spec);
}

static void *cookie_of(const struct admin_request *q)
{
    return (void *)(uintptr_t)q->id;
}

void admin_run_references(struct admin_request *q)
{
    struct control *c = q->admin->control;

    if (q->rest.n != 0)
        registry_report_reference(c->registry, q->rest, &c->registry_box.box, cookie_of(q));
    else
        registry_report(c->registry, REGISTRY_REPORT_REFERENCES, &c->registry_box.box,
                        cookie_of(q));
}

void admin_run_registries(struct admin_request *q)
{
    struct control *c = q->admin->control;

    registry_report(c->registry, REGISTRY_REPORT_REGISTRIES, &c->registry_box.box, cookie_of(q));
}

void admin_on_report(struct admin *a, struct registry_mail *m)
{
    struct admin_request *q = admin_find(a, (uint64_t)(uintptr_t)m->cookie);

    if (q == NULL || q->answered)
        return;
    if (str_starts(str_from(q->url), STR("/references")))
        on_registry_references(q, buf_str(&m->report));
    else
        admin_answer_json(q, MHD_HTTP_OK, buf_str(&m->report));
}

/* ---------------------------------------------------------------- providers, connections */

static void on_providers(struct control *c, void **parts, unsigned n, void *ctx)
{
    struct admin_request *q = admin_find(c->admin, (uint64_t)(uintptr_t)ctx);
    json_t *workers = merged(parts, n);
    json_t *list = json_array();
    const char *key = NULL;
    json_t *r = NULL;
    const char *wanted = q != NULL ? admin_query(q, "service") : NULL;

    json_object_foreach(workers, key, r)
    {
        size_t i = 0;
        json_t *p = NULL;

        if (wanted != NULL && strcmp(wanted, key) != 0)
            continue;
        json_array_foreach(json_object_get(r, "providers"), i, p)
        {
            json_object_set_new(p, "service", json_string(key));
            json_array_append(list, p);
        }
    }
    if (q != NULL) {
        json_t *o = json_object();

        json_object_set_new(o, "count", json_integer((json_int_t)json_array_size(list)));
        json_object_set(o, "providers", list);
        answer_object(q, o);
        json_decref(o);
    }
    json_decref(list);
    json_decref(workers);
}

void admin_run_providers(struct admin_request *q)
{
    const struct gather_spec spec = {
        .make = make_object,
        .run = collect_references,
        .release = release_json,
        .done = on_providers,
        .ctx = cookie_of(q),
    };

    control_gather(q->admin->control, &spec);
}

static void on_connections(struct control *c, void **parts, unsigned n, void *ctx)
{
    struct admin_request *q = admin_find(c->admin, (uint64_t)(uintptr_t)ctx);
    json_t *list = json_array();
    json_t *o = json_object();

    for (unsigned i = 0; i < n; i++) {
        if (parts[i] != NULL)
            json_array_extend(list, parts[i]);
    }
    json_object_set_new(o, "count", json_integer((json_int_t)json_array_size(list)));
    json_object_set_new(o, "connections", list);
    if (q != NULL)
        answer_object(q, o);
    json_decref(o);
}

void admin_run_connections(struct admin_request *q)
{
    const struct gather_spec spec = {
        .make = make_array,
        .run = collect_connections,
        .release = release_json,
        .done = on_connections,
        .ctx = cookie_of(q),
    };

    control_gather(q->admin->control, &spec);
}
