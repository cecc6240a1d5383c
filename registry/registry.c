#include "registry/registry.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/core.h"

enum { TICK_S_1000 = 20, EVICTIONS_PER_TICK = 8, EVICT_PATIENCE_MS = 2000 };

/* What other threads ask for.  Freed by the registry thread. */
enum post_kind {
    POST_ADD_WORKER,
    POST_CONFIGURE,
    POST_WANT,
    POST_TOUCH,
    POST_EVICT_ANSWER,
    POST_REFRESH,
    POST_REPORT,
    POST_STOP,
};

struct post {
    struct registry_post head; /* first member */
    enum post_kind kind;
    struct arena arena;
    struct refkey key;
    struct str text;
    const char *source;
    struct mailbox *box;
    bool flag;
    enum registry_report_kind report;
    void *cookie;
    struct wanted_service *services;
    size_t n_services;
};

/* ---------------------------------------------------------------- mail to workers */

void registry_mail_free(struct registry_mail *m)
{
    directory_put(m->directory);
    buf_free(&m->report);
    free(m->key_text);
    free(m);
}

static void send_to(struct mailbox *box, enum registry_mail_kind kind, const char *key,
                    struct directory *d, enum registry_refusal refusal)
{
    struct registry_mail *m = xcalloc(1, sizeof(*m));

    m->kind = kind;
    m->refusal = refusal;
    m->key_text = key != NULL ? strdup(key) : NULL;
    m->directory = d != NULL ? directory_get(d) : NULL;
    buf_init(&m->report, 0);
    mailbox_push(box, &m->mail);
}

void registry_send(struct registry *r, unsigned worker, enum registry_mail_kind kind,
                   const char *key, struct directory *d, enum registry_refusal refusal)
{
    send_to(r->workers[worker], kind, key, d, refusal);
}

void registry_publish(struct registry *r, struct reference *ref, struct directory *d)
{
    for (unsigned i = 0; i < r->n_workers; i++)
        registry_send(r, i, REGISTRY_MAIL_DIRECTORY, ref->key_text, d, REFUSAL_NONE);
}

void registry_mark_dirty(struct registry *r)
{
    if (r->dirty_since_ms == 0)
        r->dirty_since_ms = clock_ms();
}

static unsigned worker_index(const struct registry *r, const struct mailbox *box)
{
    unsigned i = 0;

    while (i < r->n_workers && r->workers[i] != box)
        i++;
    return i;
}

/* ---------------------------------------------------------------- unknown names */

void registry_remember_unknown(struct registry *r, const char *key)
{
    struct negative *n = NULL;
    size_t len = strlen(key);

    HASH_FIND_STR(r->negatives, key, n);
    if (n == NULL) {
        if (r->n_negatives >=
            r->opts.max_references) { /* the oldest goes: uthash keeps the order */
            struct negative *oldest = r->negatives;

            HASH_DEL(r->negatives, oldest);
            free(oldest);
            r->n_negatives--;
        }
        n = xcalloc(1, sizeof(*n) + len + 1);
        memcpy(n->key, key, len + 1);
        HASH_ADD_STR(r->negatives, key, n);
        r->n_negatives++;
    }
    n->until_ms = clock_ms() + NEGATIVE_MS;
}

static bool is_known_unknown(struct registry *r, const char *key)
{
    struct negative *n = NULL;

    HASH_FIND_STR(r->negatives, key, n);
    return n != NULL && clock_ms() < n->until_ms;
}

static void expire_negatives(struct registry *r, uint64_t now)
{
    /* in order of entry, and all live equally long */
    while (r->negatives != NULL && now >= r->negatives->until_ms) {
        struct negative *n = r->negatives;

        HASH_DEL(r->negatives, n);
        free(n);
        r->n_negatives--;
    }
}

/* ---------------------------------------------------------------- wants */

static struct source *find_source(struct registry *r, const char *name)
{
    for (size_t i = 0; i < r->n_sources; i++) {
        if (name == NULL || strcmp(r->sources[i].conf.name, name) == 0)
            return &r->sources[i];
    }
    return NULL;
}

static struct reference *find(struct registry *r, const char *key_text)
{
    struct reference *ref = NULL;

    HASH_FIND_STR(r->by_key, key_text, ref);
    return ref;
}

static bool may_look_up(struct registry *r)
{
    uint64_t now = clock_ms();

    if (now - r->second_ms >= 1000) {
        r->second_ms = now;
        r->lookups_this_second = 0;
    }
    return r->n_lookups < LOOKUPS_MAX && r->lookups_this_second < LOOKUPS_PER_SECOND &&
           r->n_references < r->opts.max_references;
}

static void look_up(struct registry *r, const struct refkey *k, struct source *s, unsigned worker)
{
    struct reference *ref = reference_new(r, k, s);

    r->n_lookups++;
    r->lookups_this_second++;
    ref->waiting_workers = UINT64_C(1) << worker;
    reference_use_snapshot(ref);
    reference_subscribe(ref);
}

static void on_want(struct registry *r, struct post *p)
{
    unsigned worker = worker_index(r, p->box);
    char key[REFKEY_TEXT_MAX + 1];
    struct buf b = {.data = (uint8_t *)key, .cap = sizeof(key), .limit = sizeof(key)};
    struct reference *ref = NULL;
    struct source *s = find_source(r, p->source);

    refkey_print(&p->key, &b);
    buf_add_u8(&b, '\0');
    if (worker == r->n_workers)
        return;
    ref = find(r, key);
    if (ref != NULL) {
        ref->last_used_ms = clock_ms();
        ref->last_used_wall_ms = wall_ms();
        if (ref->directory != NULL)
            registry_send(r, worker, REGISTRY_MAIL_DIRECTORY, key, ref->directory, REFUSAL_NONE);
        else
            ref->waiting_workers |= UINT64_C(1) << worker;
        return;
    }
    if (s == NULL || is_known_unknown(r, key))
        registry_send(r, worker, REGISTRY_MAIL_REFUSED, key, NULL, REFUSAL_UNKNOWN);
    else if (!may_look_up(r))
        registry_send(r, worker, REGISTRY_MAIL_REFUSED, key, NULL, REFUSAL_LIMIT);
    else
        look_up(r, &p->key, s, worker);
}

/* ---------------------------------------------------------------- configured services */

static bool same_urls(const struct reference *ref, const struct wanted_service *w)
{
    if (ref->n_fixed_urls != w->n_urls)
        return false;
    for (size_t i = 0; i < w->n_urls; i++) {
        if (!str_eq(ref->fixed_urls[i], w->urls[i]))
            return false;
    }
    return true;
}

/* One block: the slices and, behind them, their texts. */
static struct str *copy_urls(const struct wanted_service *w)
{
    size_t bytes = 0;
    struct str *v = NULL;
    char *at = NULL;

    for (size_t i = 0; i < w->n_urls; i++)
        bytes += w->urls[i].n;
    v = xcalloc(1, w->n_urls * sizeof(*v) + bytes + 1);
    at = (char *)(v + w->n_urls);
    for (size_t i = 0; i < w->n_urls; i++) {
        memcpy(at, w->urls[i].p, w->urls[i].n);
        v[i] = (struct str){at, w->urls[i].n};
        at += w->urls[i].n;
    }
    return v;
}

static void configure_one(struct registry *r, const struct wanted_service *w)
{
    struct source *s = w->n_urls != 0 ? NULL : find_source(r, w->registry);
    char key[REFKEY_TEXT_MAX + 1];
    struct buf b = {.data = (uint8_t *)key, .cap = sizeof(key), .limit = sizeof(key)};
    struct reference *ref = NULL;

    refkey_print(&w->key, &b);
    buf_add_u8(&b, '\0');
    ref = find(r, key);
    if (ref != NULL && (ref->source != s || (s == NULL && !same_urls(ref, w)))) {
        reference_free(ref, false); /* it moved to other providers: a new one replaces it at once */
        ref = NULL;
    }
    if (ref == NULL) {
        ref = reference_new(r, &w->key, s);
        ref->watched = true;
    } else if (!ref->watched) {
        ref->watched = true; /* was being looked up: the same read serves */
        r->n_lookups--;
    }
    ref->pinned = true;
    if (ref->subscribes != 0 || ref->directory != NULL)
        return;
    if (s == NULL) {
        ref->fixed_urls = copy_urls(w);
        ref->n_fixed_urls = w->n_urls;
        reference_use_fixed(ref);
        return;
    }
    reference_use_snapshot(ref);
    reference_subscribe(ref);
}

static void on_configure(struct registry *r, struct post *p)
{
    struct reference *ref = NULL;
    struct reference *next = NULL;

    for (ref = r->by_key; ref != NULL; ref = ref->hh.next)
        ref->pinned = false;
    for (size_t i = 0; i < p->n_services; i++)
        configure_one(r, &p->services[i]);
    /* fixed ones that are configured no more have nothing to live for */
    HASH_ITER(hh, r->by_key, ref, next)
    {
        if (!ref->pinned && ref->source == NULL)
            reference_free(ref, true);
    }
}

static void on_add_worker(struct registry *r, struct post *p)
{
    if (r->n_workers == WORKERS_MAX)
        return;
    r->workers[r->n_workers++] = p->box;
    for (struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next) {
        if (ref->directory != NULL)
            registry_send(r, r->n_workers - 1, REGISTRY_MAIL_DIRECTORY, ref->key_text,
                          ref->directory, REFUSAL_NONE);
    }
}

/* ---------------------------------------------------------------- eviction */

static void on_touch(struct registry *r, struct post *p)
{
    struct str rest = p->text;
    char key[REFKEY_TEXT_MAX + 1];

    while (rest.n != 0) {
        struct str one = str_cut(rest, '\n', &rest);
        struct reference *ref = NULL;

        snprintf(key, sizeof(key), STR_FMT, STR_ARG(one));
        ref = find(r, key);
        if (ref == NULL)
            continue;
        ref->last_used_ms = clock_ms();
        ref->last_used_wall_ms = wall_ms();
    }
}

static void ask_to_evict(struct registry *r, struct reference *ref)
{
    ref->evict_waiting = r->n_workers;
    ref->evict_busy = false;
    ref->evict_asked_ms = clock_ms();
    for (unsigned i = 0; i < r->n_workers; i++)
        registry_send(r, i, REGISTRY_MAIL_EVICT, ref->key_text, NULL, REFUSAL_NONE);
}

static void on_evict_answer(struct registry *r, struct post *p)
{
    char key[REFKEY_TEXT_MAX + 1];
    struct reference *ref = NULL;

    snprintf(key, sizeof(key), STR_FMT, STR_ARG(p->text));
    ref = find(r, key);
    if (ref == NULL || ref->evict_waiting == 0)
        return;
    ref->evict_busy = ref->evict_busy || !p->flag;
    if (--ref->evict_waiting != 0)
        return;
    if (ref->evict_busy || ref->pinned) {
        ref->last_used_ms = clock_ms();
        return;
    }
    counter_add(&r->numbers.evictions, 1);
    reference_free(ref, true);
    registry_mark_dirty(r);
}

static struct reference *least_recently_used(struct registry *r, uint64_t before_ms)
{
    struct reference *best = NULL;

    for (struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next) {
        if (ref->pinned || !ref->watched || ref->evict_waiting != 0 ||
            ref->last_used_ms >= before_ms || clock_ms() - ref->evict_asked_ms < EVICT_PATIENCE_MS)
            continue;
        if (best == NULL || ref->last_used_ms < best->last_used_ms)
            best = ref;
    }
    return best;
}

/* A tenth of the room is kept free, so that a new name seldom has to be refused. */
static void evict(struct registry *r, uint64_t now)
{
    size_t high = r->opts.max_references - r->opts.max_references / 10;
    uint64_t idle_before = now > r->opts.reference_idle_ms ? now - r->opts.reference_idle_ms : 0;

    if (now - r->last_evict_ms < 100)
        return;
    r->last_evict_ms = now;
    for (int i = 0; i < EVICTIONS_PER_TICK; i++) {
        bool full = r->n_references >= high;
        struct reference *ref = least_recently_used(r, full ? now : idle_before);

        if (ref == NULL)
            return;
        ask_to_evict(r, ref);
    }
}

/* ---------------------------------------------------------------- the thread */

static void on_report(struct registry *r, struct post *p)
{
    struct registry_mail *m = xcalloc(1, sizeof(*m));

    m->kind = REGISTRY_MAIL_REPORT;
    m->cookie = p->cookie;
    buf_init(&m->report, (size_t)256 * 1024 * 1024);
    if (p->report == REGISTRY_REPORT_REFERENCES)
        report_references_json(r, &m->report);
    else
        report_registries_json(r, &m->report);
    mailbox_push(p->box, &m->mail);
}

static void on_refresh(struct registry *r, struct post *p)
{
    char key[REFKEY_TEXT_MAX + 1];
    struct reference *ref = NULL;

    snprintf(key, sizeof(key), STR_FMT, STR_ARG(p->text));
    ref = find(r, key);
    if (ref != NULL && ref->source != NULL)
        ref->source->kind->refresh(ref->source->impl, ref);
}

static void free_post(struct post *p)
{
    arena_free(&p->arena);
    free(p);
}

void registry_free_post(struct registry_post *p)
{
    free_post(container_of(p, struct post, head));
}

static void on_post(struct registry *r, struct post *p)
{
    switch (p->kind) {
    case POST_ADD_WORKER:
        on_add_worker(r, p);
        break;
    case POST_CONFIGURE:
        on_configure(r, p);
        break;
    case POST_WANT:
        on_want(r, p);
        break;
    case POST_TOUCH:
        on_touch(r, p);
        break;
    case POST_EVICT_ANSWER:
        on_evict_answer(r, p);
        break;
    case POST_REFRESH:
        on_refresh(r, p);
        break;
    case POST_REPORT:
        on_report(r, p);
        break;
    case POST_STOP:
        r->stopping = true;
        ev_break(r->loop, EVBREAK_ALL);
        break;
    }
    free_post(p);
}

static void take_mail(struct registry *r)
{
    struct mail *m = mailbox_take(&r->box);

    while (m != NULL) {
        struct mail *next = m->next;
        struct registry_post *head = container_of(m, struct registry_post, mail);

        if (head->run != NULL)
            head->run(head); /* of a kind: it frees itself */
        else
            on_post(r, container_of(head, struct post, head));
        m = next;
    }
}

static void on_wake(struct ev_loop *loop, ev_async *a, int events)
{
    take_mail(container_of(a, struct registry, wake));
}

static void update_numbers(struct registry *r)
{
    uint64_t connected = 0;
    uint64_t waiting = 0;

    for (size_t i = 0; i < r->n_sources; i++)
        connected += r->sources[i].connected ? 1U : 0U;
    for (const struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next)
        waiting += ref->pinned && ref->directory == NULL ? 1U : 0U;
    counter_set(&r->numbers.connected, connected);
    counter_set(&r->numbers.disconnected, r->n_sources - connected);
    counter_set(&r->numbers.waiting, waiting);
}

/* Names of fixed providers change too; those of a registry are resolved with each list. */
static void resolve_again(struct registry *r, uint64_t now)
{
    if (now - r->last_resolve_ms < RESOLVE_AGAIN_MS)
        return;
    r->last_resolve_ms = now;
    for (struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next) {
        if (ref->source == NULL)
            reference_use_fixed(ref);
    }
}

static void on_tick(struct ev_loop *loop, ev_timer *t, int events)
{
    struct registry *r = container_of(t, struct registry, tick);
    uint64_t now = clock_ms();
    struct reference *ref = NULL;
    struct reference *next = NULL;

    for (size_t i = 0; i < r->n_sources; i++)
        r->sources[i].kind->tick(r->sources[i].impl);
    HASH_ITER(hh, r->by_key, ref, next)
    {
        reference_tick(ref, now);
    }
    expire_negatives(r, now);
    evict(r, now);
    resolve_again(r, now);
    if (r->dirty_since_ms != 0 && now - r->dirty_since_ms >= SAVE_AFTER_MS)
        snapshot_save(r);
    update_numbers(r);
}

static void free_all(struct registry *r)
{
    struct reference *ref = NULL;
    struct reference *next = NULL;

    HASH_ITER(hh, r->by_key, ref, next)
    {
        reference_free(ref, false);
    }
    for (size_t i = 0; i < r->n_sources; i++)
        r->sources[i].kind->close(r->sources[i].impl);
    take_mail(r); /* what came meanwhile is freed */
    while (r->negatives != NULL) {
        struct negative *n = r->negatives;

        HASH_DEL(r->negatives, n);
        free(n);
    }
    snapshot_free(r);
}

static void *thread_main(void *arg)
{
    struct registry *r = arg;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    ev_run(r->loop, 0);
    snapshot_save(r);
    free_all(r);
    return NULL;
}

/* ---------------------------------------------------------------- start and stop */

static void wake(struct mailbox *box)
{
    struct registry *r = container_of(box, struct registry, box);

    ev_async_send(r->loop, &r->wake);
}

static const char *keep(struct registry *r, const char *text)
{
    return text != NULL ? arena_cstr(&r->arena, str_from(text)) : NULL;
}

static void copy_opts(struct registry *r, const struct registry_opts *o)
{
    struct url_param *params = arena_alloc(&r->arena,
                                           (o->n_consumer_parameters + 1) * sizeof(*params));

    r->opts = *o;
    r->opts.state_dir = keep(r, o->state_dir);
    r->opts.application = keep(r, o->application);
    r->opts.consumer_address = keep(r, o->consumer_address);
    r->opts.consumer_instance = keep(r, o->consumer_instance);
    for (size_t i = 0; i < o->n_consumer_parameters; i++) {
        params[i].key = arena_str(&r->arena, o->consumer_parameters[i].key);
        params[i].value = arena_str(&r->arena, o->consumer_parameters[i].value);
    }
    r->opts.consumer_parameters = params;
}

static bool open_sources(struct registry *r, const struct registry_opts *o, struct err *e)
{
    r->sources = arena_alloc(&r->arena, (o->n_registries + 1) * sizeof(*r->sources));
    for (size_t i = 0; i < o->n_registries; i++) {
        struct source *s = &r->sources[i];
        struct network *nets = arena_alloc(&r->arena, (o->registries[i].n_provider_networks + 1) *
                                                          sizeof(*nets));

        s->home = r;
        s->conf = o->registries[i];
        s->conf.name = keep(r, o->registries[i].name);
        s->conf.address = keep(r, o->registries[i].address);
        s->conf.root = keep(r, o->registries[i].root);
        if (s->conf.n_provider_networks != 0)
            memcpy(nets, s->conf.provider_networks, s->conf.n_provider_networks * sizeof(*nets));
        s->conf.provider_networks = nets;
        s->changed_ms = clock_ms();
        s->kind = registry_kind_find(str_from(s->conf.address));
        if (s->kind == NULL) {
            err_set(e, "registry %s: \"%s\" is no registry address", s->conf.name, s->conf.address);
            return false;
        }
        s->impl = s->kind->open(s, e);
        if (s->impl == NULL)
            return false;
        r->n_sources++;
    }
    return true;
}

struct registry *registry_start(const struct registry_opts *opts, struct err *e)
{
    struct registry *r = xcalloc(1, sizeof(*r));
    int rc = 0;

    arena_init(&r->arena);
    copy_opts(r, opts);
    r->loop = ev_loop_new(EVFLAG_AUTO);
    if (r->loop == NULL)
        fatal("no event loop");
    mailbox_init(&r->box, wake);
    ev_async_init(&r->wake, on_wake);
    ev_async_start(r->loop, &r->wake);
    ev_timer_init(&r->tick, on_tick, TICK_S_1000 / 1000., TICK_S_1000 / 1000.);
    ev_timer_start(r->loop, &r->tick);
    r->resolver = resolver_new(NULL);
    r->last_resolve_ms = clock_ms();
    if (!open_sources(r, opts, e)) {
        /* nothing runs yet; the caller ends the process */
        return NULL;
    }
    snapshot_load(r);
    update_numbers(r);
    counter_set(&r->numbers.waiting, 1); /* until the services are known */
    rc = pthread_create(&r->thread, NULL, thread_main, r);
    if (rc != 0) {
        err_set(e, "cannot start the registry thread: %s", strerror(rc));
        return NULL;
    }
    return r;
}

static struct post *new_post(enum post_kind kind)
{
    struct post *p = xcalloc(1, sizeof(*p));

    p->kind = kind;
    arena_init(&p->arena);
    return p;
}

static void post(struct registry *r, struct post *p)
{
    mailbox_push(&r->box, &p->head.mail);
}

void registry_stop(struct registry *r)
{
    post(r, new_post(POST_STOP));
    pthread_join(r->thread, NULL);
    take_mail(r);
    ev_loop_destroy(r->loop);
    resolver_free(r->resolver);
    arena_free(&r->arena);
    free(r);
}

/* ---------------------------------------------------------------- from other threads */

void registry_add_worker(struct registry *r, struct mailbox *box)
{
    struct post *p = new_post(POST_ADD_WORKER);

    p->box = box;
    post(r, p);
}

static void copy_key(struct post *p, const struct refkey *k, struct refkey *to)
{
    to->interface = arena_str(&p->arena, k->interface);
    to->version = arena_str(&p->arena, k->version);
    to->group = arena_str(&p->arena, k->group);
}

void registry_configure(struct registry *r, const struct wanted_service *services, size_t n)
{
    struct post *p = new_post(POST_CONFIGURE);

    p->services = arena_alloc(&p->arena, (n + 1) * sizeof(*p->services));
    p->n_services = n;
    for (size_t i = 0; i < n; i++) {
        struct wanted_service *w = &p->services[i];
        struct str *urls = arena_alloc(&p->arena, (services[i].n_urls + 1) * sizeof(*urls));

        copy_key(p, &services[i].key, &w->key);
        w->registry = services[i].registry != NULL
                          ? arena_cstr(&p->arena, str_from(services[i].registry))
                          : NULL;
        for (size_t j = 0; j < services[i].n_urls; j++)
            urls[j] = arena_str(&p->arena, services[i].urls[j]);
        w->urls = urls;
        w->n_urls = services[i].n_urls;
    }
    post(r, p);
}

void registry_want(struct registry *r, const struct refkey *k, const char *registry,
                   struct mailbox *box)
{
    struct post *p = new_post(POST_WANT);

    copy_key(p, k, &p->key);
    p->source = registry != NULL ? arena_cstr(&p->arena, str_from(registry)) : NULL;
    p->box = box;
    post(r, p);
}

void registry_touch(struct registry *r, struct mailbox *box, struct str keys)
{
    struct post *p = new_post(POST_TOUCH);

    p->text = arena_str(&p->arena, keys);
    post(r, p);
}

void registry_evict_answer(struct registry *r, struct mailbox *box, struct str key_text, bool idle)
{
    struct post *p = new_post(POST_EVICT_ANSWER);

    p->text = arena_str(&p->arena, key_text);
    p->flag = idle;
    post(r, p);
}

void registry_refresh(struct registry *r, struct str key_text)
{
    struct post *p = new_post(POST_REFRESH);

    p->text = arena_str(&p->arena, key_text);
    post(r, p);
}

void registry_report(struct registry *r, enum registry_report_kind kind, struct mailbox *box,
                     void *cookie)
{
    struct post *p = new_post(POST_REPORT);

    p->report = kind;
    p->box = box;
    p->cookie = cookie;
    post(r, p);
}

void registry_numbers(const struct registry *r, struct registry_numbers *out)
{
    const struct numbers *n = &r->numbers;

    *out = (struct registry_numbers){
        .subscriptions_total = counter_get(&n->subscriptions),
        .evictions_total = counter_get(&n->evictions),
        .writes_create_total = counter_get(&n->creates),
        .writes_delete_total = counter_get(&n->deletes),
        .events_total = counter_get(&n->events),
        .reconnects_total = counter_get(&n->reconnects),
        .sessions_expired_total = counter_get(&n->expired),
        .watches = counter_get(&n->watches),
        .consumer_nodes = counter_get(&n->consumer_nodes),
        .snapshot_saved_wall_ms = counter_get(&n->saved_wall_ms),
        .snapshot_writable = counter_get(&n->writable) != 0,
        .connected = (uint32_t)counter_get(&n->connected),
        .disconnected = (uint32_t)counter_get(&n->disconnected),
        .waiting = (uint32_t)counter_get(&n->waiting),
    };
    for (size_t i = 0; i < REFERENCE_STATES; i++)
        out->references[i] = counter_get(&n->references[i]);
}
