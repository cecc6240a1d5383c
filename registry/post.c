/*
 * What other threads ask the registry's thread for: functions of registry.h that any thread may call, and what is done
 * with their posts there.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "registry/core.h"
#include "registry/reference_definitions.h"

/* What other threads ask for.  The post's arena holds all its texts. */
enum post_kind {
    POST_ADD_WORKER,
    POST_CONFIGURE,
    POST_WANT,
    POST_TOUCH,
    POST_EVICT_ANSWER,
    POST_UNLISTED_LOST,
    POST_METADATA,
    POST_TELNET,
    POST_REFRESH,
    POST_DESCRIBE,
    POST_REPORT,
    POST_STOP,
};

struct post {
    struct registry_post head; /* first member */
    enum post_kind kind;
    struct registry *to;
    struct arena arena;
    struct mailbox *box;
    struct refkey key;
    struct str text;
    struct str answer;
    const char *source;
    bool flag;
    enum registry_report_kind report;
    void *cookie;
    struct wanted_service *services;
    size_t n_services;
    struct directory *directory; /* counted */
    const size_t *lost;
    size_t n_lost;
    struct metadata_ask *ask;  /* owned */
    struct telnet_ask *telnet; /* owned */
};

/* ---------------------------------------------------------------- in the registry's thread */

static unsigned worker_index(const struct registry *r, const struct mailbox *box)
{
    unsigned i = 0;

    while (i < r->n_workers && r->workers[i] != box)
        i++;
    return i;
}

static void on_add_worker(struct registry *r, struct mailbox *box)
{
    unsigned worker = r->n_workers;

    if (worker == WORKERS_MAX)
        fatal("more than %d workers", WORKERS_MAX);
    r->workers[r->n_workers++] = box;
    for (struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next) {
        if (ref->directory != NULL)
            reference_wait(ref, worker); /* is answered at once */
    }
}

static void on_touch(struct registry *r, struct str keys)
{
    while (keys.n != 0) {
        struct reference *ref = cache_find(r, str_cut(keys, '\n', &keys));

        if (ref == NULL)
            continue;
        ref->evict_busy = true;
        reference_touch(ref);
    }
}

static void on_report(struct registry *r, const struct post *p)
{
    struct registry_mail *m = registry_mail_new(REGISTRY_MAIL_REPORT);

    m->cookie = p->cookie;
    buf_init(&m->report, (size_t)256 * 1024 * 1024);
    switch (p->report) {
    case REGISTRY_REPORT_REFERENCES:
        registry_print_references(r, p->text, &m->report);
        break;
    case REGISTRY_REPORT_REGISTRIES:
        registry_print_registries(r, &m->report);
        break;
    }
    mailbox_push(p->box, &m->mail);
}

static void on_post(struct registry *r, struct post *p)
{
    unsigned worker = worker_index(r, p->box);
    struct reference *ref = p->kind != POST_METADATA ? cache_find(r, p->text) : NULL;

    switch (p->kind) {
    case POST_ADD_WORKER:
        on_add_worker(r, p->box);
        break;
    case POST_CONFIGURE:
        cache_configure(r, p->services, p->n_services);
        break;
    case POST_WANT:
        if (worker < r->n_workers)
            cache_want(r, &p->key, p->source, worker);
        break;
    case POST_TOUCH:
        on_touch(r, p->text);
        break;
    case POST_EVICT_ANSWER:
        if (worker < r->n_workers && ref != NULL)
            cache_evict_answer(r, ref, worker, p->flag);
        break;
    case POST_UNLISTED_LOST:
        if (worker < r->n_workers && ref != NULL)
            reference_unlisted_lost(ref, worker, p->directory, p->lost, p->n_lost);
        break;
    case POST_METADATA:
        p->ask->source->kind->on_metadata(p->ask->source->impl, p->ask->app, p->ask->revision,
                                          p->text);
        break;
    case POST_TELNET:
        if (ref != NULL)
            reference_on_telnet(ref, p->telnet, p->answer);
        break;
    case POST_REFRESH:
        if (ref != NULL)
            ref->source->kind->refresh(ref->source->impl, ref);
        break;
    case POST_DESCRIBE:
        if (ref != NULL)
            reference_describe_again(ref);
        break;
    case POST_REPORT:
        on_report(r, p);
        break;
    case POST_STOP:
        r->stopping = true;
        break;
    }
}

static void run_post(struct registry_post *head)
{
    struct post *p = container_of(head, struct post, head);

    if (!p->to->stopping)
        on_post(p->to, p);
    directory_put(p->directory);
    free(p->ask);
    free(p->telnet);
    arena_free(&p->arena);
    free(p);
}

/* ---------------------------------------------------------------- from other threads */

static struct post *new_post(struct registry *r, enum post_kind kind)
{
    struct post *p = xcalloc(1, sizeof(*p));

    p->head.run = run_post;
    p->to = r;
    p->kind = kind;
    arena_init(&p->arena);
    return p;
}

static void post(struct post *p)
{
    mailbox_push(&p->to->box, &p->head.mail);
}

/* The thread ends its loop when it gets there. */
void registry_post_stop(struct registry *r)
{
    post(new_post(r, POST_STOP));
}

void registry_add_worker(struct registry *r, struct mailbox *box)
{
    struct post *p = new_post(r, POST_ADD_WORKER);

    p->box = box;
    post(p);
}

static void copy_key(struct post *p, const struct refkey *k, struct refkey *to)
{
    to->interface = arena_str(&p->arena, k->interface);
    to->version = arena_str(&p->arena, k->version);
    to->group = arena_str(&p->arena, k->group);
}

static const char *copy_name(struct post *p, const char *name)
{
    return name != NULL ? arena_cstr(&p->arena, str_from(name)) : NULL;
}

void registry_configure(struct registry *r, const struct wanted_service *services, size_t n)
{
    struct post *p = new_post(r, POST_CONFIGURE);

    p->services = arena_alloc(&p->arena, (n + 1) * sizeof(*p->services));
    p->n_services = n;
    for (size_t i = 0; i < n; i++) {
        struct wanted_service *w = &p->services[i];
        struct str *urls = arena_alloc(&p->arena, (services[i].n_urls + 1) * sizeof(*urls));

        copy_key(p, &services[i].key, &w->key);
        w->registry = copy_name(p, services[i].registry);
        for (size_t j = 0; j < services[i].n_urls; j++)
            urls[j] = arena_str(&p->arena, services[i].urls[j]);
        w->urls = urls;
        w->n_urls = services[i].n_urls;
        w->discovery = services[i].discovery;
        w->provided_by = arena_str(&p->arena, services[i].provided_by);
    }
    post(p);
}

void registry_want(struct registry *r, const struct refkey *k, const char *registry,
                   struct mailbox *box)
{
    struct post *p = new_post(r, POST_WANT);

    copy_key(p, k, &p->key);
    p->source = copy_name(p, registry);
    p->box = box;
    post(p);
}

void registry_touch(struct registry *r, struct mailbox *box, struct str keys)
{
    struct post *p = new_post(r, POST_TOUCH);

    p->text = arena_str(&p->arena, keys);
    post(p);
}

void registry_evict_answer(struct registry *r, struct mailbox *box, struct str key_text, bool idle)
{
    struct post *p = new_post(r, POST_EVICT_ANSWER);

    p->box = box;
    p->text = arena_str(&p->arena, key_text);
    p->flag = idle;
    post(p);
}

void registry_unlisted_lost(struct registry *r, struct mailbox *box, struct str key_text,
                            struct directory *d, const size_t *lost, size_t n)
{
    struct post *p = new_post(r, POST_UNLISTED_LOST);
    size_t *copy = arena_alloc(&p->arena, (n + 1) * sizeof(*copy));

    p->box = box;
    p->text = arena_str(&p->arena, key_text);
    p->directory = directory_get(d);
    if (n != 0)
        memcpy(copy, lost, n * sizeof(*copy));
    p->lost = copy;
    p->n_lost = n;
    post(p);
}

void registry_metadata(struct registry *r, struct metadata_ask *ask, struct str json)
{
    struct post *p = new_post(r, POST_METADATA);

    p->ask = ask;
    if (json.p != NULL)
        p->text = arena_str(&p->arena, json);
    post(p);
}

void registry_telnet(struct registry *r, struct telnet_ask *ask, struct str text)
{
    struct post *p = new_post(r, POST_TELNET);

    p->telnet = ask;
    p->text = str_from(ask->key);
    if (text.p != NULL)
        p->answer = arena_str(&p->arena, text);
    post(p);
}

void registry_refresh(struct registry *r, struct str key_text)
{
    struct post *p = new_post(r, POST_REFRESH);

    p->text = arena_str(&p->arena, key_text);
    post(p);
}

void registry_describe(struct registry *r, struct str key_text)
{
    struct post *p = new_post(r, POST_DESCRIBE);

    p->text = arena_str(&p->arena, key_text);
    post(p);
}

static void post_report(struct registry *r, enum registry_report_kind kind, struct str key_text,
                        struct mailbox *box, void *cookie)
{
    struct post *p = new_post(r, POST_REPORT);

    p->report = kind;
    p->text = arena_str(&p->arena, key_text);
    p->box = box;
    p->cookie = cookie;
    post(p);
}

void registry_report(struct registry *r, enum registry_report_kind kind, struct mailbox *box,
                     void *cookie)
{
    post_report(r, kind, STR_NONE, box, cookie);
}

void registry_report_reference(struct registry *r, struct str key_text, struct mailbox *box,
                               void *cookie)
{
    post_report(r, REGISTRY_REPORT_REFERENCES, key_text, box, cookie);
}
