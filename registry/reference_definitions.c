#include "registry/reference_definitions.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/core.h"
#include "registry/reference_telnet.h"

enum { LOST_MS = 5000 }; /* an answer that did not come by then went with its session */

const char *definition_source_name(enum definition_source s)
{
    switch (s) {
    case DEFINITION_REPORT:
        return "report";
    case DEFINITION_TELNET:
        return "telnet";
    case DEFINITION_SAVED:
        return "saved";
    }
    return "?";
}

/* ---------------------------------------------------------------- the set */

static struct described *find(const struct reference *ref, struct str application)
{
    for (size_t i = 0; ref->definitions != NULL && i < ref->definitions->n; i++) {
        struct described *d = &ref->definitions->v[i];

        if (d->application != NULL && str_is(application, d->application))
            return d;
    }
    return NULL;
}

static void drop_definition(struct reference *ref, struct described *d)
{
    if (d->definition == NULL)
        return;
    ref->home->definition_bytes -= d->definition->n;
    definition_put(d->definition);
    d->definition = NULL;
    ref->definitions->changed = true;
}

static void drop(struct reference *ref, struct described *d)
{
    drop_definition(ref, d);
    free(d->application);
    *d = (struct described){0};
}

/* A free place, or that of an application without providers; one more when there is none. */
static struct described *place(struct reference *ref)
{
    struct reference_definitions *s = ref->definitions;
    size_t n = s != NULL ? s->n : 0;

    for (size_t i = 0; i < n; i++) {
        if (s->v[i].n_providers == 0)
            return &s->v[i];
    }
    if (n == DEFINITIONS_MAX)
        return NULL;
    s = xrealloc(s, sizeof(*s) + (n + 1) * sizeof(s->v[0]));
    if (n == 0)
        *s = (struct reference_definitions){0};
    s->v[n] = (struct described){0};
    s->n = (uint32_t)n + 1;
    ref->definitions = s;
    return &s->v[n];
}

/* Takes the count over. */
static void set_definition(struct reference *ref, struct described *d, struct definition *fresh,
                           enum definition_source source)
{
    d->definition = fresh;
    d->source = source;
    ref->home->definition_bytes += fresh->n;
    ref->definitions->changed = true;
}

/* NULL: all places are taken by applications with providers. */
static struct described *add(struct reference *ref, struct str application)
{
    struct described *d = place(ref);

    if (d == NULL)
        return NULL;
    drop(ref, d);
    d->application = strndup(application.p, application.n);
    if (d->application == NULL)
        fatal("out of memory");
    return d;
}

/* That with most providers first, then by name: which definition counts does not depend on who was read first. */
static bool comes_before(const struct described *a, const struct described *b)
{
    if (a->n_providers != b->n_providers)
        return a->n_providers > b->n_providers;
    return strcmp(a->application, b->application) < 0;
}

static void make_set(struct reference_definitions *s)
{
    const struct described *order[DEFINITIONS_MAX];
    struct definition *v[DEFINITIONS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        size_t at = n;

        if (s->v[i].definition == NULL)
            continue;
        while (at > 0 && comes_before(&s->v[i], order[at - 1])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = &s->v[i];
        n++;
    }
    for (size_t i = 0; i < n; i++)
        v[i] = order[i]->definition;
    definitions_put(s->set);
    s->set = n != 0 ? definitions_new(v, n) : NULL;
    s->changed = false;
}

void reference_tell_definitions(struct reference *ref, unsigned worker)
{
    struct reference_definitions *s = ref->definitions;
    struct outgoing o = {REGISTRY_MAIL_DEFINITIONS, .key = ref->key_text};

    if (s == NULL || s->follow_ms != 0 || (worker == WORKERS_MAX && !s->changed))
        return;
    if (s->changed)
        make_set(s);
    o.definitions = s->set;
    if (worker == WORKERS_MAX)
        registry_send_all(ref->home, &o);
    else
        registry_send(ref->home, worker, &o);
}

bool reference_definitions_follow(const struct reference *ref)
{
    return ref->definitions != NULL && ref->definitions->follow_ms != 0;
}

/* ---------------------------------------------------------------- what is asked for */

static const struct provider *provider_of(const struct reference *ref, const char *application)
{
    for (size_t i = 0; i < ref->directory->n; i++) {
        if (str_is(ref->directory->providers[i].application, application))
            return &ref->directory->providers[i];
    }
    return NULL;
}

static void ask(struct reference *ref, struct described *d, uint64_t now)
{
    const struct provider *p = provider_of(ref, d->application);

    d->again_ms = 0;
    if (p == NULL || !ref->source->kind->describe(ref->source->impl, ref, p))
        return;
    d->asked_ms = ref->definitions->read_ms = now;
}

static void count(const struct reference *ref, struct described *d, const struct provider *p,
                  uint64_t *sums)
{
    d->n_providers++;
    sums[d - ref->definitions->v] += (hash_bytes(p->host.p, p->host.n) ^ p->timestamp_ms) * 31 +
                                     p->port;
}

/* Counts the providers of each application and notes which they are.  An application that is not in the list any
 * more keeps its place until another one wants it. */
static void count_providers(struct reference *ref, uint64_t *sums)
{
    const struct directory *list = ref->directory;

    for (size_t i = 0; ref->definitions != NULL && i < ref->definitions->n; i++)
        ref->definitions->v[i].n_providers = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct provider *p = &list->providers[i];
        struct described *d = find(ref, p->application);

        if (d != NULL)
            count(ref, d, p, sums);
    }
    for (size_t i = 0; i < list->n; i++) { /* none of those that are known gives up its place now */
        const struct provider *p = &list->providers[i];
        struct described *d = NULL;

        if (p->application.n == 0 || find(ref, p->application) != NULL)
            continue;
        d = add(ref, p->application);
        for (size_t j = i; d != NULL && j < list->n; j++) {
            if (str_eq(list->providers[j].application, p->application))
                count(ref, d, &list->providers[j], sums);
        }
    }
}

/* What the last run knew serves until something was read, or as long as the registry has nothing to read. */
static void recall(struct reference *ref)
{
    struct saved_definitions *s = saved_definitions_take(ref);

    for (size_t i = 0; s != NULL && i < s->n; i++) {
        struct str application = str_from(s->v[i].application);
        struct described *d = find(ref, application);

        if (d == NULL)
            d = add(ref, application);
        if (d != NULL && d->definition == NULL)
            set_definition(ref, d, definition_get(s->v[i].definition), DEFINITION_SAVED);
    }
    if (s != NULL)
        reference_event(ref, "methods known from the saved list");
    saved_definitions_free(s);
}

void reference_describe(struct reference *ref)
{
    uint64_t sums[DEFINITIONS_MAX] = {0};
    uint64_t now = clock_ms();
    bool first = false;

    if (ref->source->kind->describe == NULL || ref->directory->n == 0)
        return;
    if (ref->definitions == NULL)
        recall(ref);
    first = ref->definitions == NULL;
    if (!ref->watched) { /* the saved list */
        if (!first)
            count_providers(ref, sums);
        return;
    }
    count_providers(ref, sums);
    for (size_t i = 0; ref->definitions != NULL && i < ref->definitions->n; i++) {
        struct described *d = &ref->definitions->v[i];

        if (d->n_providers == 0 || (d->providers == sums[i] && d->asked_ms == 0))
            continue;
        d->last_time = false;
        d->telnet_wanted = true;
        d->telnet_tries = 0;
        ask(ref, d, now);
        if (d->asked_ms != 0)
            d->providers = sums[i];
        if (first && d->asked_ms != 0)
            ref->definitions->follow_ms = now;
    }
    reference_place(ref);
}

void reference_describe_again(struct reference *ref)
{
    struct reference_definitions *s = ref->definitions;
    uint64_t now = clock_ms();

    if (s == NULL || ref->directory == NULL || now - s->read_ms < DEFINITIONS_APART_MS)
        return;
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].n_providers == 0 || s->v[i].asked_ms != 0)
            continue;
        s->v[i].telnet_wanted = true;
        ask(ref, &s->v[i], now);
    }
}

/* ---------------------------------------------------------------- answers */

bool definitions_have_room(struct registry *r, size_t n)
{
    if (r->definition_bytes + n <= DEFINITIONS_BYTES_MAX)
        return true;
    if (!r->definitions_full_told)
        log_warn("registry",
                 "the methods of all services take more than %d MiB: further ones are "
                 "not known",
                 DEFINITIONS_BYTES_MAX >> 20);
    r->definitions_full_told = true;
    return false;
}

/* Two applications of one service mostly publish the same: it is kept once. */
static struct definition *shared(const struct reference *ref, struct definition *fresh)
{
    for (size_t i = 0; i < ref->definitions->n; i++) {
        struct definition *d = ref->definitions->v[i].definition;

        if (d == NULL || !definition_equal(d, fresh))
            continue;
        definition_put(fresh);
        return definition_get(d);
    }
    return fresh;
}

/* Takes `fresh` over. */
static void use(struct reference *ref, struct described *d, struct definition *fresh,
                enum definition_source source)
{
    bool same = d->definition != NULL && definition_equal(d->definition, fresh);

    if (same)
        d->source = source;
    if (same || !definitions_have_room(ref->home, fresh->n)) {
        definition_put(fresh);
        return;
    }
    fresh = shared(ref, fresh);
    drop_definition(ref, d);
    set_definition(ref, d, fresh, source);
    registry_mark_dirty(ref->home);
    reference_event(ref, "methods of %s known by the %s, %zu bytes", d->application,
                    definition_source_name(source), fresh->n);
}

static void use_report(struct reference *ref, struct described *d, struct str text)
{
    struct err e = {0};
    struct definition *fresh = definition_read(text, &e);

    if (fresh != NULL) {
        use(ref, d, fresh, DEFINITION_REPORT);
        return;
    }
    log_warn("registry", "%s: the definition of %s is not used: %s", ref->key_text, d->application,
             e.text);
    reference_event(ref, "definition of %s not used: %s", d->application, e.text);
}

static bool still_waits(const struct reference_definitions *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].asked_ms != 0 || s->v[i].telnet_asked)
            return true;
    }
    return false;
}

/* The first ones were waited for: now the workers hear that nothing more is to come soon. */
static void end_waiting(struct reference_definitions *s)
{
    if (s->follow_ms != 0)
        s->changed = true;
    s->follow_ms = 0;
}

static void after_answer(struct reference *ref)
{
    if (!still_waits(ref->definitions))
        end_waiting(ref->definitions);
    reference_tell_definitions(ref, WORKERS_MAX);
    reference_place(ref);
}

/* A report that was there says more than telnet, also when it is gone with the registry's data. */
static void ask_by_telnet(struct reference *ref, struct described *d, bool tell)
{
    bool reported = d->definition != NULL && d->source == DEFINITION_REPORT;

    if (!d->telnet_wanted || d->telnet_asked || reported)
        return;
    d->telnet_asked = reference_ask_telnet(ref, d, tell);
    d->telnet_wanted = !d->telnet_asked;
}

void reference_on_definition(struct reference *ref, struct str application, struct str text,
                             int64_t mzxid)
{
    struct described *d = find(ref, application);
    bool second = false;

    if (d == NULL)
        return;
    d->asked_ms = 0;
    if (text.p != NULL && mzxid != d->mzxid) {
        use_report(ref, d, text);
        d->mzxid = mzxid;
    }
    second = !d->last_time;
    d->last_time = true;
    d->again_ms = second ? clock_ms() + DEFINITIONS_AGAIN_MS : 0;
    if (text.p == NULL)
        ask_by_telnet(ref, d, !second);
    after_answer(ref);
}

/* Another provider is asked later; what one of them refused, all would. */
static void on_no_methods(struct reference *ref, struct described *d, const struct telnet_ask *ask,
                          const char *why, bool refused)
{
    struct buf address;

    buf_init(&address, 64);
    address_print(&ask->addr, &address);
    log_info("registry", "%s: " STR_FMT " port %u says no methods by telnet: %s", ref->key_text,
             STR_ARG(buf_str(&address)), ntohs(ask->addr.v4.sin_port), why);
    reference_event(ref, "no methods by telnet from " STR_FMT " port %u: %s",
                    STR_ARG(buf_str(&address)), ntohs(ask->addr.v4.sin_port), why);
    buf_free(&address);
    if (refused || ++d->telnet_tries >= DEFINITIONS_TELNET_TRIES)
        return;
    d->telnet_wanted = true;
    d->again_ms = clock_ms() + (uint64_t)DEFINITIONS_AGAIN_MS * d->telnet_tries;
}

void reference_on_telnet(struct reference *ref, const struct telnet_ask *ask, struct str text)
{
    struct described *d = find(ref, str_from(ask->application));
    struct definition *fresh = NULL;
    struct err e = {0};

    if (d == NULL || !d->telnet_asked)
        return;
    d->telnet_asked = false;
    if (text.p != NULL)
        fresh = definition_read_telnet(text, &e);
    if (fresh == NULL)
        on_no_methods(ref, d, ask, text.p != NULL ? e.text : ask->why.text, text.p != NULL);
    else if (d->definition != NULL && d->source == DEFINITION_REPORT)
        definition_put(fresh); /* it was published meanwhile */
    else
        use(ref, d, fresh, DEFINITION_TELNET);
    if (d->telnet_wanted && d->again_ms == 0) /* the providers changed meanwhile */
        d->again_ms = clock_ms() + DEFINITIONS_AGAIN_MS;
    after_answer(ref);
}

/* ---------------------------------------------------------------- time */

bool reference_definitions_due(const struct reference *ref)
{
    const struct reference_definitions *s = ref->definitions;

    for (size_t i = 0; s != NULL && i < s->n; i++) {
        if (s->v[i].again_ms != 0 || s->v[i].asked_ms != 0)
            return true;
    }
    return s != NULL && s->follow_ms != 0;
}

void reference_definitions_tick(struct reference *ref, uint64_t now_ms)
{
    struct reference_definitions *s = ref->definitions;

    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++) {
        struct described *d = &s->v[i];

        if (d->asked_ms != 0 && now_ms - d->asked_ms > LOST_MS) {
            d->asked_ms = 0;
            d->providers = 0; /* asked again with the next list */
        }
        if (d->again_ms != 0 && now_ms >= d->again_ms)
            ask(ref, d, now_ms);
    }
    if (s->follow_ms == 0 || now_ms - s->follow_ms < DEFINITIONS_FOLLOW_MS)
        return;
    end_waiting(s);
    reference_tell_definitions(ref, WORKERS_MAX);
}

void reference_definitions_free(struct reference *ref)
{
    struct reference_definitions *s = ref->definitions;

    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++)
        drop(ref, &s->v[i]);
    definitions_put(s->set);
    free(s);
    ref->definitions = NULL;
}
